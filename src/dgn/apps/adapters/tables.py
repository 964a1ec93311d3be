"""pandas and polars: select rows of a table, group by group."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack

from dgn.errors import InvalidInput
from dgn.selector import Limits, Selector
from dgn.selector.limits import LimitArguments
from dgn.text.query import Query

Frame = TypeVar("Frame")
_QUERIES_PER_BATCH = 64


def select_rows(
    table: Frame,
    *,
    group: str,
    query: str,
    text: str,
    title: str | None = None,
    score: str | None = None,
    selector: Selector | None = None,
    **limits: Unpack[LimitArguments],
) -> Frame:
    """Select the rows of each group that together cover the group's query.

    Args:
        table: A pandas or polars DataFrame with one row for each passage.
        group: The column that says which rows belong together.
        query: The column with the query, the same in all rows of a group.
        text: The column with the passage.
        title: A column with titles.
        score: A column with relevance scores, to be taken into account.
        selector: What selects; by default the model that ships with dgn.
        limits: k, max_tokens, stop_at and the other limits of `Selector.select`, for each group.

    Returns:
        The selected rows in the order of selection, groups in the order of their first rows, with
        the further columns `rank` (from 1), `gain` and `relevance`.

    Examples:
        >>> import pandas as pd
        >>> table = pd.DataFrame({
        ...     "id": [7, 7, 7],
        ...     "question": ["Who swims?"] * 3,
        ...     "text": ["Bo runs.", "Ada swims.", "Cy sings."],
        ... })
        >>> found = select_rows(table, group="id", query="question", text="text", k=1)
        >>> found[["text", "rank"]].to_dict("records")
        [{'text': 'Ada swims.', 'rank': 1}]
    """
    checked = Limits(**limits)
    kind = type(table).__module__.partition(".")[0]
    if kind not in {"pandas", "polars"}:
        found = type(table).__name__
        raise InvalidInput("table", found=found, allowed="a DataFrame of pandas or polars")
    by_group = _rows_by_group(table, group)
    columns = {name: _column(table, name) for name in (query, text, title, score) if name}
    queries = [
        _query_of(columns, rows, query, text, title, score, f"{group} {value!r}")
        for value, rows in by_group.items()
    ]
    rows: list[int] = []
    added: dict[str, list[Any]] = {"rank": [], "gain": [], "relevance": []}
    chosen = selector or Selector.from_pretrained()
    groups = list(by_group.values())
    for start in range(0, len(queries), _QUERIES_PER_BATCH):
        some = queries[start : start + _QUERIES_PER_BATCH]
        for own, selection in zip(
            groups[start:], chosen.select_queries(some, checked), strict=False
        ):
            rows += [own[index] for index in selection.indices]
            added["rank"] += range(1, len(selection) + 1)
            added["gain"] += selection.gains
            added["relevance"] += [selection.relevance[index] for index in selection.indices]
    return _rows_of(table, kind, rows, added)


def _rows_by_group(table: Any, group: str) -> dict[Any, list[int]]:
    """The rows of each group."""
    rows: dict[Any, list[int]] = {}
    for row, value in enumerate(_column(table, group)):
        rows.setdefault(value, []).append(row)
    return rows


def _column(table: Any, name: str) -> list[Any]:
    if name not in table.columns:
        known = ", ".join(map(str, table.columns))
        raise InvalidInput(
            name, message=f"The table has no column {name!r}; its columns are {known}."
        )
    return table[name].to_list()


def _query_of(
    columns: dict[str, list[Any]],
    rows: list[int],
    query: str,
    text: str,
    title: str | None,
    score: str | None,
    name: str,
) -> Query:
    asked = {columns[query][row] for row in rows}
    if len(asked) > 1:
        raise InvalidInput(
            query, message=f"The rows of {name} have {len(asked)} different values of {query!r}."
        )
    try:
        return Query.of(
            asked.pop(),
            [columns[text][row] for row in rows],
            titles=None if title is None else [columns[title][row] or "" for row in rows],
            scores=None if score is None else [columns[score][row] for row in rows],
        )
    except InvalidInput as error:
        raise InvalidInput(text, message=f"{name}: {error}") from None


def _rows_of(table: Any, kind: str, rows: list[int], added: dict[str, list[Any]]) -> Any:
    if kind == "pandas":
        return table.iloc[rows].assign(**added)
    import polars

    return table[rows].with_columns(
        polars.Series(name, values, polars.Int64 if name == "rank" else polars.Float64)
        for name, values in added.items()
    )
