import pandas as pd
import pytest

from dgn import InvalidInput, Selector
from dgn.apps.adapters.tables import select_rows
from retrieved import QUERY, TEXTS, WANTED

polars = pytest.importorskip("polars", reason="polars is not installed")
ROWS = [
    *({"id": "b", "claim": QUERY, "text": text, "page": "Corran", "s": 0.0} for text in TEXTS),
    {"id": "a", "claim": "Who swims?", "text": "Ada swims.", "page": None, "s": 1.0},
    {"id": "a", "claim": "Who swims?", "text": "Bo runs.", "page": None, "s": 0.0},
]
COLUMNS = {"group": "id", "query": "claim", "text": "text"}


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def test_rows_of_each_group(frame: type) -> None:
    found = select_rows(frame(ROWS), **COLUMNS, k=2)
    assert type(found) is frame
    assert found["text"].to_list() == [TEXTS[i] for i in WANTED] + ["Ada swims.", "Bo runs."]
    assert found["rank"].to_list() == [1, 2, 1, 2]
    wanted = Selector.from_pretrained().select(QUERY, TEXTS, k=2)
    assert found["gain"].to_list()[:2] == list(wanted.gains)
    assert found["relevance"].to_list()[:2] == [wanted.relevance[i] for i in WANTED]


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def test_titles_scores_and_limits(frame: type) -> None:
    one = frame(ROWS[-2:])
    found = select_rows(one, **COLUMNS, title="page", score="s", k=1, min_relevance=0.1)
    assert found["text"].to_list() == ["Ada swims."]
    assert len(select_rows(one[:0], **COLUMNS)) == 0


def test_index_of_pandas_is_kept() -> None:
    table = pd.DataFrame(ROWS, index=list("tuvwxyz"))
    assert select_rows(table, **COLUMNS, k=1).index.tolist() == ["u", "y"]


def test_mistakes_are_explained() -> None:
    table = pd.DataFrame(ROWS)
    with pytest.raises(InvalidInput, match="no column 'body'; its columns are id, claim"):
        select_rows(table, group="id", query="claim", text="body")
    with pytest.raises(InvalidInput, match="2 different values of 'claim'"):
        select_rows(table.assign(id="c"), **COLUMNS)
    with pytest.raises(InvalidInput, match="id 'a': query must be"):
        select_rows(table.assign(claim="?!")[-2:], **COLUMNS)
    with pytest.raises(InvalidInput, match="DataFrame of pandas or polars; got list"):
        select_rows(ROWS, **COLUMNS)
