"""Greedy over a matrix that is too large for one machine: GreeDi on Ray.

Each partition selects k rows of its own, and the rows that they selected are searched once more
(Mirzasoleiman et al. 2013).

In a clone: pip install '.[ray]' && python -m examples.greedy_in_partitions
"""

import numpy as np
import ray

import dgn

K, PARTITIONS, WIDTH = 10, 4, 16
f = dgn.FeatureCoverage(np.ones(WIDTH))


def rows_of(partition: int) -> np.ndarray:
    """A partition; yours reads a file or a bucket."""
    return np.random.default_rng(partition).gamma(0.3, size=(2_000, WIDTH))


@ray.remote
def best_of(partition: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows that this partition would select, with their numbers."""
    rows = rows_of(partition)
    chosen = np.array(dgn.lazy_greedy(f, rows, K).indices)
    return rows[chosen], partition * len(rows) + chosen


ray.init(address="local", num_cpus=2, log_to_driver=False, logging_level="ERROR")
found = ray.get([best_of.remote(partition) for partition in range(PARTITIONS)])
rows, numbers = (np.concatenate(parts) for parts in zip(*found, strict=True))
selection = dgn.lazy_greedy(f, rows, K)
print("rows:", *(int(numbers[index]) for index in selection.indices))

whole = dgn.lazy_greedy(f, np.concatenate([rows_of(one) for one in range(PARTITIONS)]), K)
print(
    f"{selection.certificate.value / whole.certificate.value:.1%} of the value without partitions"
)
