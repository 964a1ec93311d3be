"""Many queries on other engines: a batch of columns in, the same with selections out.

    rows.map_batches(SelectBatch, fn_constructor_kwargs={"k": 5})    # Ray Data
    dataset.map(SelectBatch(k=5), batched=True)                      # Hugging Face datasets

`select_on_ray` is the first of them from files to files: `dgn select --engine ray`.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Unpack, cast, final

from dgn.errors import DGNError, InvalidInput, require_extra
from dgn.selector import Limits, Selector
from dgn.selector.limits import LimitArguments
from dgn.text.query import Query

Batch = TypeVar("Batch")
ADDED = ("selected", "selected_texts", "gains", "relevance", "coverage")
"""The columns that are added."""

_ARGUMENTS = tuple(inspect.signature(Query.of).parameters)


@cache
def _loaded(model: str | None) -> Selector:
    """The model, once in every process."""
    return Selector.from_pretrained(model)


@final
class SelectBatch:
    """Selects for every row of a batch.

        ray_dataset.map_batches(SelectBatch, fn_constructor_kwargs={"k": 5}, concurrency=2)
        dataset.map(SelectBatch(k=5), batched=True)

    A batch is a dictionary of columns of the same length, a pandas DataFrame, or a Table or
    RecordBatch of Arrow. The result is of the same kind and has the further columns `selected` (the
    numbers of the selected passages), `selected_texts`, `gains`, `relevance` and `coverage`. It can
    be pickled; every process loads the model once.

    Args:
        model: As in `Selector.from_pretrained`.
        columns: Where an argument of `Selector.select` has another name in the batch:
            `{"query": "claim", "passages": "sentences", "titles": "pages"}`. Columns with the names
            of the arguments (query, passages or documents, titles, scores, …) are used without it,
            and so are claim and sentences.
        limits: k, max_tokens, stop_at and the other limits of `Selector.select`.

    Examples:
        >>> batch = {"query": ["Who swims?"], "passages": [["Bo runs.", "Ada swims."]]}
        >>> SelectBatch(k=1)(batch)["selected_texts"][0]
        ['Ada swims.']
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        **limits: Unpack[LimitArguments],
    ) -> None:
        unknown = sorted(set(columns or {}) - set(_ARGUMENTS))
        if unknown:
            allowed = f"keys among {', '.join(_ARGUMENTS)}"
            raise InvalidInput("columns", found=repr(unknown[0]), allowed=allowed)
        self._model, self._columns = model, dict(columns or {})
        Limits(**limits)  # a mistake is reported here, and not in a worker
        self._limits = limits

    def __call__(self, batch: Batch) -> Batch:
        """The batch with the selections of its rows."""
        columns = self._used(_names(batch))
        values = [_column(batch, column) for column in columns.values()]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
        selections = list(_loaded(self._model).select_many(rows, **self._limits))
        added = {
            "selected": [list(one.indices) for one in selections],
            "selected_texts": [list(one.texts) for one in selections],
            "gains": [list(one.gains) for one in selections],
            "relevance": [[one.relevance[i] for i in one.indices] for one in selections],
            "coverage": [one.coverage for one in selections],
        }
        return _with_columns(batch, added)

    def _used(self, known: list[str]) -> dict[str, str]:
        """The columns of this batch by the names of the arguments."""
        same = {name: name for name in _ARGUMENTS if name in known and name != "id"}
        used = same | self._columns
        used.setdefault("query", "claim" if "claim" in known else "query")
        if not {"passages", "documents"} & set(used):
            used["passages"] = "sentences" if "sentences" in known else "passages"
        elif len({"passages", "documents"} & set(same)) == 2:
            del used["documents"]
        for column in used.values():
            if column not in known:
                message = f"The batch has no column {column!r}; its columns are {', '.join(known)}."
                raise InvalidInput("columns", message=message)
        return used


def select_on_ray(
    queries: str,
    out: str,
    *,
    model: str | None = None,
    limits: Limits | None = None,
    batch_size: int = 64,
    address: str | None = None,
) -> int:
    """Select for all rows of some files with Ray Data, which schedules, repeats and writes.

    Args:
        queries: A file, a folder or a URL such as `s3://bucket/queries` with rows of queries:
            Parquet, or else JSONL.
        out: A folder or a URL for Parquet files with the rows and the columns of `SelectBatch`.
        model: As in `Selector.from_pretrained`.
        limits: How much to select.
        batch_size: Queries per batch.
        address: The address of a cluster, as in `ray.init`; by default RAY_ADDRESS, or else Ray is
            started on this machine.

    Returns:
        The number of rows.

    Raises:
        InvalidInput: The cluster cannot be reached, or the files cannot be read or written.
    """
    limits = limits or Limits()
    if not os.path.exists(queries) and "://" not in queries:
        raise InvalidInput("queries", message=f"There is no file or folder {queries}.")
    require_extra("--engine ray", package="ray", extra="ray")
    import ray

    package: Any = ray
    data: Any = importlib.import_module("ray.data")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if not package.is_initialized():
            package.init(address or os.environ.get("RAY_ADDRESS") or "local", **quiet)
        is_parquet = _is_parquet(queries)
        rows: Any = (
            data.read_parquet(queries) if is_parquet else data.read_json(queries, lines=True)
        )
        selected = rows.map_batches(
            SelectBatch,
            fn_constructor_kwargs={"model": model, **limits.to_dict()},
            batch_format="pyarrow",
            batch_size=batch_size,
            concurrency=max(1, int(package.cluster_resources().get("CPU", 2)) - 1),
        )
        selected.write_parquet(out)
        return int(rows.count())
    except DGNError:
        raise
    except (OSError, ValueError, RuntimeError, package.exceptions.RayError) as error:
        ours = re.findall(r"^dgn\.errors\.\w+: (.+)$", str(error), re.MULTILINE)
        reason = ours[-1] if ours else " ".join(str(error).split())[-300:]
        raise InvalidInput("queries", message=f"Ray could not select: {reason}") from None


def _is_parquet(queries: str) -> bool:
    if os.path.isdir(queries):
        return any(name.endswith(".parquet") for name in os.listdir(queries))
    return queries.endswith((".parquet", "*"))


def _names(batch: Any) -> list[str]:
    if isinstance(batch, Mapping):
        return list(cast("Mapping[str, Any]", batch))
    if hasattr(batch, "column_names"):
        return list(batch.column_names)
    if hasattr(batch, "columns") and hasattr(batch, "assign"):
        return [str(name) for name in batch.columns]
    if hasattr(batch, "schema"):
        return list(batch.schema.names)
    found = type(batch).__name__
    raise InvalidInput(
        "batch", found=found, allowed="a dictionary, a pandas DataFrame or a table of Arrow"
    )


def _column(batch: Any, name: str) -> list[Any]:
    column = batch[name] if hasattr(batch, "__getitem__") else batch.column(name)
    if hasattr(column, "to_pylist"):
        values = column.to_pylist()
    else:
        values = [value.tolist() if hasattr(value, "tolist") else value for value in column]
    # pandas has NaN where a row lacks a value.
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


def _with_columns(batch: Any, added: dict[str, list[Any]]) -> Any:
    if isinstance(batch, Mapping):
        return {**cast("Mapping[str, Any]", batch), **added}
    if hasattr(batch, "assign"):
        return batch.assign(**added)
    import pyarrow

    pa: Any = pyarrow  # whose functions are only partly typed
    kinds = (pa.list_(pa.int64()), pa.list_(pa.string()), pa.list_(pa.float64()))
    types = (*kinds, pa.list_(pa.float64()), pa.float64())
    for (name, values), kind in zip(added.items(), types, strict=True):
        batch = batch.append_column(name, pa.array(values, kind))
    return batch
