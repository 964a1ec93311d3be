"""From the body of a request to the body of its answer: everything that takes time.

An `Answerer` knows no connection and no event loop. It runs where it can be waited for, or ended:
in a worker process of `dgn serve`, or in a thread. Requests that arrive together are selected
together; the results are those of one request at a time, because no result of a Selector depends
on the batch.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from dgn.apps.service import answers
from dgn.apps.service.refusals import Refused, ServiceLimits, refusal_body
from dgn.apps.service.requests import request_models
from dgn.errors import InvalidInput
from dgn.selector import Limits, PassageSelection, Selector
from dgn.text.languages import written_words
from dgn.text.query import Query

Finish = Callable[[list[PassageSelection]], bytes]
"""From the selections of a request to the body of its answer."""

RERANK_PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")
PATHS = ("/v1/select", "/v1/explain", "/v1/compare", *RERANK_PATHS)
"""What can be asked for."""

_MOST_ERRORS = 20
_MOST_KEYS = 32
"""Of an object whose keys are known; more of them are refused before each one is looked at."""

_CHARACTERS_PER_TOKEN = 8
"""Texts with more characters than that per token of the limit are refused before they are read."""


@dataclass(frozen=True)
class Asked:
    """A request whose body has arrived.

    Attributes:
        path: One of PATHS.
        request_id: Its id, which refusals repeat.
        body: The body.
    """

    path: str
    request_id: str
    body: bytes


@dataclass(frozen=True)
class Answered:
    """The answer to a request.

    Attributes:
        status: The HTTP status.
        body: The body: JSON, and a problem document if the request was refused.
        reason: A word for the metrics, if the request was over a limit.
        passages: How many passages were read.
        failure: The traceback, if answering failed; for the log.
    """

    status: int
    body: bytes
    reason: str = ""
    passages: int = 0
    failure: str = ""


@dataclass
class _Job:
    """A request that was understood."""

    queries: list[Query]
    limits: Limits
    finish: Finish


class Answerer:
    """Answers requests.

    Args:
        selector: Selects for every request.
        limits: How much a request may be.
    """

    def __init__(self, selector: Selector, limits: ServiceLimits) -> None:
        self._selector, self._limits = selector, limits
        self._tokens = limits.tokens or selector.encoder.request_tokens
        models = request_models(limits)
        one = TypeAdapter[Any](models.one)
        rerank = TypeAdapter[Any](models.rerank)
        self._models: dict[str, TypeAdapter[Any]] = {
            "/v1/select": TypeAdapter[Any](models.select),
            "/v1/explain": one,
            "/v1/compare": one,
            **dict.fromkeys(RERANK_PATHS, rerank),
        }

    def warm(self) -> None:
        """Load what is loaded when it is first used, so that no client waits for it."""
        body = json.dumps({"query": "a first question", "passages": ["A first passage.", "é"]})
        self.answer([Asked("/v1/explain", "warm", body.encode())])

    def answer(self, asked: Sequence[Asked]) -> list[Answered]:
        """The answers, in the order of the requests; a request that fails disturbs no other one."""
        found: list[Answered | _Job] = [self._understood(one) for one in asked]
        jobs = [one for one in found if isinstance(one, _Job)]
        bodies = self._selected(jobs)
        return [
            one if isinstance(one, Answered) else self._finished(request, one, bodies[id(one)])
            for request, one in zip(asked, found, strict=True)
        ]

    def _understood(self, asked: Asked) -> _Job | Answered:
        try:
            value = _parsed(asked.body)
            _check_keys(value)
            body = self._models[asked.path].validate_python(value)
            return self._job(asked.path, body)
        except Refused as refusal:
            return _refused(asked, refusal)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
            errors = [
                {"at": _pointer(one["loc"]), "message": _message(one)}
                for one in cast("list[dict[str, Any]]", details[:_MOST_ERRORS])
            ]
            detail = f"{errors[0]['at'] or 'The body'}: {errors[0]['message']}."
            return Answered(422, refusal_body(422, detail, asked.request_id, errors=errors))
        except Exception:
            return _failed(asked)

    def _job(self, path: str, body: Any) -> _Job:
        many = getattr(body, "queries", None)
        requests = [body] if many is None else list(many)
        queries = self._built(requests)
        limits: Limits = body.limits()
        if path in RERANK_PATHS:

            def reranked(found: list[PassageSelection]) -> bytes:
                with_texts = bool(body.return_documents)
                return answers.reranked_body(found[0], limits.k or 1, with_texts, self._selector)

            return _Job(queries, limits, reranked)
        finish = {"/v1/explain": answers.explained_body, "/v1/compare": answers.compared_body}.get(
            path, answers.one_body if many is None else answers.many_body
        )
        return _Job(queries, limits, lambda found: finish(found, body))

    def _built(self, requests: Sequence[Any]) -> list[Query]:
        """The queries of a request, within the limits; what is cheap to check comes first."""
        characters = sum(one.characters() for one in requests)
        if characters > _CHARACTERS_PER_TOKEN * self._tokens:
            raise Refused(
                422,
                f"The texts have {characters:,} characters; the limit is "
                f"{_CHARACTERS_PER_TOKEN * self._tokens:,}.",
                reason="tokens",
            )
        queries: list[Query] = []
        for number, one in enumerate(requests):
            index = f"queries[{number}]: " if len(requests) > 1 else ""
            # In Chinese every character is a word; passages may decide that it is Chinese.
            words = max(len(written_words(one.query, code)) for code in ("en", "zh"))
            if words > self._limits.query_words:
                raise Refused(
                    422,
                    f"{index}The query has {words:,} words; the limit is "
                    f"{self._limits.query_words:,}.",
                    reason="query",
                )
            try:
                queries.append(one.query_of())
            except InvalidInput as error:
                raise Refused(422, f"{index}{error}") from None
            if len(queries[-1].passages) > self._limits.passages:
                raise Refused(
                    422,
                    f"{index}The documents have {len(queries[-1].passages):,} sentences; the limit "
                    f"is {self._limits.passages:,}.",
                    reason="passages",
                )
        self._check_tokens(queries)
        return queries

    def _check_tokens(self, queries: Sequence[Query]) -> None:
        texts = [
            text
            for query in queries
            for text in (query.text, *query.texts, *(one.text for one in query.given))
        ]
        if sum(map(len, texts)) <= self._tokens:
            return  # a token has at least one character
        count = sum(self._selector.encoder.count_tokens(texts))
        if count > self._tokens:
            raise Refused(
                422,
                f"The texts have {count:,} tokens; the limit is {self._tokens:,}.",
                reason="tokens",
            )

    def _selected(self, jobs: Sequence[_Job]) -> dict[int, list[PassageSelection] | Exception]:
        """The selections of each job, by its identity; jobs with the same limits go together."""
        alike: dict[Limits, list[_Job]] = {}
        for job in jobs:
            alike.setdefault(job.limits, []).append(job)
        results: dict[int, list[PassageSelection] | Exception] = {}
        for limits, some in alike.items():
            queries = [query for job in some for query in job.queries]
            try:
                selections = iter(self._selector.select_queries(queries, limits))
                results |= {id(job): [next(selections) for _ in job.queries] for job in some}
            except Exception as error:
                if len(some) == 1:
                    results[id(some[0])] = error
                else:  # one of them is at fault; the others are answered all the same
                    for job in some:
                        results |= self._selected([job])
        return results

    def _finished(
        self, asked: Asked, job: _Job, selections: list[PassageSelection] | Exception
    ) -> Answered:
        try:
            if isinstance(selections, Exception):
                raise selections
            passages = sum(len(query.passages) for query in job.queries)
            return Answered(200, job.finish(selections), passages=passages)
        except InvalidInput as error:
            return _refused(asked, Refused(422, str(error)))
        except Exception:
            return _failed(asked)


def _refused(asked: Asked, refusal: Refused) -> Answered:
    body = refusal_body(refusal.status, refusal.detail, asked.request_id)
    return Answered(refusal.status, body, refusal.reason)


def _failed(asked: Asked) -> Answered:
    detail = "The service failed; its log has the reason under the id of this request."
    body = refusal_body(500, detail, asked.request_id)
    return Answered(500, body, failure=traceback.format_exc())


def _parsed(body: bytes) -> Any:
    """JSON as RFC 8259 defines it, without NaN, numbers beyond all limits, and half characters."""
    try:
        value = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        reason = "It is not UTF-8"
    except UnicodeEncodeError:
        reason = "It contains half of a Unicode character"
    except RecursionError:
        reason = "It is nested too deeply"
    except json.JSONDecodeError as error:
        reason = error.msg
    except ValueError as error:  # Python refuses integers of thousands of digits
        reason = str(error).partition(";")[0]
    else:
        return value
    raise Refused(400, f"The body is not JSON: {reason}.")


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not a number of JSON", "", 0)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise json.JSONDecodeError("A number is too large", "", 0)
    return number


def _check_keys(value: Any, depth: int = 0) -> None:
    """Refuse objects with very many keys; to name each unknown one would take seconds."""
    if not isinstance(value, dict):
        return
    body = cast("dict[str, Any]", value)
    if len(body) > _MOST_KEYS:
        raise Refused(422, f"An object has {len(body):,} fields; most of them are not known.")
    for inner in body.values():
        if type(inner) is list and depth < 2:
            for one in cast("list[Any]", inner):
                if type(one) is dict:
                    _check_keys(one, depth + 1)


_MESSAGES = {
    "string_pattern_mismatch": "it must contain a visible character",
    "string_too_long": "it must have at most {max_length} characters",
    "extra_forbidden": "this field is not known",
    "dict_type": "it must be an object",
    "model_attributes_type": "it must be a string, or an object with text",
    "model_type": "it must be an object",
    "string_type": "it must be a string",
    "list_type": "it must be a list",
    "too_short": "it must have at least {min_length} entry",
    "too_long": "it must have at most {max_length} entries",
    "int_type": "it must be an integer",
    "float_type": "it must be a number",
    "greater_than_equal": "it must be at least {ge}",
    "less_than_equal": "it must be at most {le}",
    "greater_than": "it must be greater than {gt}",
}


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        is_text = error["loc"][-1] in {"passages", "text"}
        return "it is missing" + (" (or documents, or sentences)" if is_text else "")
    text = _MESSAGES.get(error["type"])
    if text is None:
        return str(error["msg"]).removeprefix("Value error, ")
    return text.format(**error.get("ctx", {}))


def _pointer(location: Sequence[str | int]) -> str:
    """A JSON pointer; the names of variants are not part of the body."""
    return "".join(f"/{one}" for one in location if not str(one).startswith("?"))
