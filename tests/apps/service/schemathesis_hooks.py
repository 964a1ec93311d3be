"""Hooks of schemathesis for the service; see test_schema.py."""

from typing import Any

import schemathesis


def _has_words(value: Any) -> bool:
    """Whether no query in this body is a text without letters and digits.

    The service refuses such a query, and JSON Schema cannot say so for every script: the classes
    of its patterns are those of ECMAScript, without Unicode.
    """
    if isinstance(value, dict):
        query = value.get("query", "a")
        own = not isinstance(query, str) or query == "" or any(map(str.isalnum, query))
        return own and _has_words(value.get("queries", []))
    return all(map(_has_words, value)) if isinstance(value, list) else True


_RELATED = {"query_embedding", "embeddings", "groups", "pinned"}
_RELATED |= {"max_per_document", "max_per_group", "language"}
"""Fields that must fit the passages, or a list, which the schema cannot say; see test_app.py."""


def _unrelated(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_unrelated, value))
    if not isinstance(value, dict):
        return value
    kept = {key: own for key, own in value.items() if key not in _RELATED}
    return kept | {"queries": _unrelated(value["queries"])} if "queries" in value else kept


@schemathesis.hook
def before_call(_: Any, case: Any, __: Any) -> None:
    case.body = _unrelated(case.body)


@schemathesis.hook
def filter_body(_: Any, body: Any) -> bool:
    return _has_words(body)
