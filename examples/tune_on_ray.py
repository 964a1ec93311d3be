"""Ray: a hyperparameter search whose trials run on all nodes of a cluster, in one Optuna study.

In a clone: pip install '.[data,train,tune,ray]' && python -m examples.tune_on_ray

Every task runs the same command and takes the next trials of the study. On several machines,
STORAGE is a database that all of them reach, such as postgresql://host/optuna, and FOLDER is a
folder that all of them see.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import ray

TASKS, TRIALS = 2, 2
SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"


def dgn(*arguments: str) -> str:
    """Run a command of dgn, and return what it printed."""
    command = [sys.executable, "-m", "dgn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@ray.remote(num_cpus=1)
def search(folder: str, storage: str, number: int) -> str:
    """Take trials until the study has enough of them."""
    features = f"{folder}/features"
    return dgn(
        *("tune", "--train", features, "--validation", features, "--epochs", "1"),
        *("--search", "learning_rate=1e-3:1e-2:log", "--trials", str(TRIALS)),
        *("--storage", storage, "--study", "example", "--out", f"{folder}/task-{number}"),
    )


if __name__ == "__main__":
    folder = os.environ.get("FOLDER") or tempfile.mkdtemp()
    storage = os.environ.get("STORAGE") or f"sqlite:///{folder}/study.db"
    dgn("data", "features", "--queries", str(SAMPLES), "--out", f"{folder}/features")
    ray.init(address="local", num_cpus=TASKS, log_to_driver=False, logging_level="ERROR")
    for said in ray.get([search.remote(folder, storage, number) for number in range(TASKS)]):
        print(said)
