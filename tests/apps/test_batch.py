import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dgn import InvalidInput, Selector
from dgn.apps.batch import SelectBatch
from retrieved import QUERY, TEXTS, WANTED

BATCH = {"query": [QUERY, "Who swims?"], "passages": [TEXTS, ["Bo runs.", "Ada swims."]]}


def check(found: Any) -> None:
    rows = zip(BATCH["query"], BATCH["passages"], strict=True)
    given = [{"query": query, "passages": passages} for query, passages in rows]
    wanted = list(Selector.from_pretrained().select_many(given, k=2))
    assert found["selected"] == [list(one.indices) for one in wanted] == [WANTED, [1, 0]]
    assert found["selected_texts"] == [list(one.texts) for one in wanted]
    assert found["gains"] == [list(one.gains) for one in wanted]
    assert found["relevance"] == [[one.relevance[i] for i in one.indices] for one in wanted]
    assert found["coverage"] == [one.coverage for one in wanted]
    assert found["query"] == BATCH["query"]


def test_dictionary_after_a_trip_through_pickle() -> None:
    check(pickle.loads(pickle.dumps(SelectBatch(k=2)))(BATCH))


def test_pandas() -> None:
    found = SelectBatch(k=2)(pd.DataFrame(BATCH))
    assert isinstance(found, pd.DataFrame)
    check({name: found[name].tolist() for name in found.columns})


def test_arrow() -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    for table in (pa.table(BATCH), pa.RecordBatch.from_pydict(BATCH)):
        found = SelectBatch(k=2)(table)
        assert type(found) is type(table)
        check({name: found.column(name).to_pylist() for name in found.schema.names})


def test_columns_documents_and_limits() -> None:
    batch = {
        "claim": ["Who swims?"],
        "pages": [[{"title": "Sports", "text": "Bo runs. Ada swims in the lake."}]],
    }
    columns = {"query": "claim", "documents": "pages"}
    found = SelectBatch(k=2, columns=columns, min_relevance=0.2)(batch)
    assert found["selected_texts"] == [["Ada swims in the lake."]]
    assert SelectBatch(k=1)({"query": ["a"], "documents": [["b. c."]]})["selected"] == [[0]]
    rows = {"claim": ["Who swims?"], "sentences": [["Bo runs.", "Ada swims."]], "pinned": [[0]]}
    assert SelectBatch(k=1)(rows)["selected"] == [[0]]


def test_mistakes_are_explained() -> None:
    with pytest.raises(InvalidInput, match="no column 'passages'; its columns are query"):
        SelectBatch()({"query": ["a"]})
    with pytest.raises(InvalidInput, match="columns must be keys among query"):
        SelectBatch(columns={"text": "a"})
    with pytest.raises(InvalidInput, match="table of Arrow; got list"):
        SelectBatch()([])


def test_dataset_map() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    rows = [{"question": QUERY, "texts": TEXTS, "titles": ["Corran"] * 5}] * 3
    dataset = datasets.Dataset.from_list(rows)
    columns = {"query": "question", "passages": "texts", "titles": "titles"}
    found = dataset.map(SelectBatch(columns=columns, k=2), batched=True, batch_size=2)
    assert found["selected"] == [WANTED] * 3


@pytest.mark.slow
def test_from_files_to_files_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="dgn[ray] is not installed")
    rows = [{"id": "a", "query": QUERY, "passages": TEXTS}, {"id": "b", "query": "Who swims?"}]
    rows[1] |= {"passages": ["Bo runs.", "Ada swims."], "titles": ["Bo", "Ada"]}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [
        "select",
        "--queries",
        "rows.jsonl",
        "--out",
        "selected",
        "--engine",
        "ray",
        "-k",
        "2",
    ]
    run = [sys.executable, "-m", "dgn", *command]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    parts = [pd.read_parquet(path) for path in (tmp_path / "selected").iterdir()]
    found = pd.concat(parts).set_index("id")["selected"].map(list).to_dict()
    assert found == {"a": WANTED, "b": [1, 0]}
    (tmp_path / "rows.jsonl").write_text('{"query": "?!", "passages": ["a"]}\n')
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "query must be a text with a word" in done.stderr.splitlines()[-1]
