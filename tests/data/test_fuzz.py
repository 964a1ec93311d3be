"""Whatever a line holds, it is read or reported: never lost, never a traceback."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgn.data.eraser import read_eraser_claims
from dgn.data.examples import read_retrieved
from dgn.data.fever import read_fever_claims, read_wiki_pages
from dgn.data.lines import Problems
from dgn.data.plain import read_plain
from dgn.errors import BrokenInput

Reader = Callable[[Path, Problems], Iterator[object]]

READERS: dict[str, tuple[Reader, dict[str, object]]] = {
    "plain": (read_plain, {"claim": "c", "sentences": ["x", "y"], "evidence": [[1]]}),
    "fever": (
        read_fever_claims,
        {"id": 1, "claim": "c", "label": "SUPPORTS", "evidence": [[[1, 2, "P", 0]]]},
    ),
    "eraser": (
        read_eraser_claims,
        {
            "annotation_id": "a",
            "query": "q",
            "evidences": [[{"docid": "D", "start_sentence": 0, "end_sentence": 1}]],
        },
    ),
    "wiki": (read_wiki_pages, {"id": "P", "lines": "0\tOne .\tlink\n1\tTwo ."}),
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@st.composite
def broken_lines(draw: st.DrawFn, row: dict[str, object]) -> bytes:
    """A good row, the row with something in it changed or gone, cut off, or just bytes."""
    how = draw(st.sampled_from(["good", "change", "remove", "cut", "bytes", "other"]))
    if how == "bytes":
        return draw(st.binary(max_size=30)).replace(b"\n", b" ")
    if how == "other":
        return json.dumps(draw(anything)).encode()
    key = draw(st.sampled_from(sorted(row)))
    changed = dict(row)
    if how == "change":
        changed[key] = draw(anything)
    elif how == "remove":
        del changed[key]
    line = json.dumps(changed).encode()
    return line[: draw(st.integers(1, len(line)))] if how == "cut" else line


@settings(max_examples=150)
@given(st.sampled_from(sorted(READERS)), st.data())
def test_any_line_is_read_or_reported(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    read, row = READERS[name]
    lines = data.draw(st.lists(broken_lines(row), max_size=5))
    path = tmp_path_factory.mktemp("fuzz") / "rows.jsonl"
    path.write_bytes(b"\n".join(lines))
    # FEVER's own empty row is no page, and no problem.
    rows = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    empty = sum(name == "wiki" and _is_empty_page(line) for line in rows)
    problems = Problems(skip=True)
    assert len(list(read(path, problems))) + problems.count + empty == len(rows)
    for problem in problems.kept:
        assert "rows.jsonl, line" in str(problem)
    if problems.count:
        with pytest.raises(BrokenInput, match=r"rows\.jsonl, line"):
            list(read(path, Problems()))


def _is_empty_page(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except ValueError:
        return False
    return isinstance(row, dict) and row.get("id") == "" and row.get("lines") == ""


@given(st.lists(st.binary(max_size=30) | st.just(b'{"id": 1, "pages": ["P"]}'), max_size=4))
def test_retrieved_pages_too(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "rows.jsonl"
    path.write_bytes(b"\n".join(lines))
    problems = Problems(skip=True)
    found = read_retrieved(path, problems)
    assert set(found) <= {"1"}
