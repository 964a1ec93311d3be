"""The service as an ASGI application: routes, and what they answer."""

# No `from __future__ import annotations`: FastAPI could not see the models inside a function.
import json
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

import dgn
from dgn.apps.service import answers
from dgn.apps.service.batching import Batcher, Finish
from dgn.apps.service.gate import Gate, Metrics
from dgn.apps.service.refusals import (
    EXPLAINED,
    MEDIA_TYPE,
    Refused,
    ServiceLimits,
    busy,
    refusal_response,
)
from dgn.apps.service.requests import request_models
from dgn.errors import InvalidInput
from dgn.selector import Limits, PassageSelection, Selector
from dgn.text.query import Query

_PAGE = Path(__file__).parent / "page"
_SCRIPT = "text/javascript; charset=utf-8"
_PAGE_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/page.js": ("page.js", _SCRIPT),
    "/page/link.js": ("link.js", _SCRIPT),
    "/page/reasons.js": ("reasons.js", _SCRIPT),
    "/page/picture.js": ("picture.js", _SCRIPT),
    "/page/samples.json": ("samples.json", "application/json"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Every file that can be fetched: no path comes from a request."""

_JSON = "application/json"


class Service:
    """The application, and the switch that makes it refuse new work before it stops.

    Args:
        selector: Selects for every request.
        limits: How much a request may be, and how many may wait.
        token: A bearer token that requests must have.
        hosts: The host names that a request may use; empty for any.
    """

    def __init__(
        self,
        selector: Selector,
        limits: ServiceLimits | None = None,
        *,
        token: str | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.limits = limits or ServiceLimits()
        self.metrics = Metrics()
        self.selector = selector
        self.batcher = Batcher(
            selector,
            self.limits.batch_queries,
            self.limits.seconds,
            self.metrics.batches.observe,
        )
        self.api = _routes(self, token is not None)
        self._gate = Gate(self.api, self.limits, self.metrics, token, hosts, _PAGE_FILES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    @property
    def is_draining(self) -> bool:
        """Whether the service is about to stop; it still answers."""
        return self._gate.is_draining

    def drain(self) -> None:
        """Say "not ready", and ask clients to close their connections."""
        self._gate.is_draining = True

    def built(self, requests: Sequence[Any]) -> list[Query]:
        """The queries of a request, within the limits."""
        queries: list[Query] = []
        for number, one in enumerate(requests):
            index = f"queries[{number}]: " if len(requests) > 1 else ""
            try:
                queries.append(one.query_of())
            except InvalidInput as error:
                raise Refused(422, f"{index}{error}") from None
            if len(queries[-1].passages) > self.limits.passages:
                raise Refused(
                    422,
                    f"{index}The documents have {len(queries[-1].passages):,} sentences; the limit "
                    f"is {self.limits.passages:,}.",
                    reason="passages",
                )
        self._check_tokens(queries)
        self.metrics.passages.inc(sum(len(query.passages) for query in queries))
        return queries

    def _check_tokens(self, queries: Sequence[Query]) -> None:
        texts = [text for query in queries for text in (query.text, *query.texts)]
        if sum(map(len, texts)) <= self.limits.tokens:
            return  # a token has at least one character
        count = sum(self.selector.encoder.count_tokens(texts))
        if count > self.limits.tokens:
            raise Refused(
                422,
                f"The texts have {count:,} tokens; the limit is {self.limits.tokens:,}.",
                reason="tokens",
            )


def create_app(
    selector: Selector,
    limits: ServiceLimits | None = None,
    *,
    token: str | None = None,
    hosts: Collection[str] = (),
) -> Service:
    """Make the service, for uvicorn or any other ASGI server.

    Args:
        selector: Selects for every request.
        limits: How much a request may be, and how many may wait.
        token: A bearer token that requests must have.
        hosts: The host names that a request may use; empty for any.
    """
    return Service(selector, limits, token=token, hosts=hosts)


def _routes(service: Service, has_token: bool) -> FastAPI:
    models = request_models(service.limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        service.batcher.start()
        yield
        await service.batcher.stop()

    api = FastAPI(
        title="dgn",
        version=dgn.__version__,
        description="Select the few passages that together cover a query, and say why.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from the web
        redoc_url=None,
    )
    api.router.route_class = _StrictRoute
    refusals = _refusals(has_token)

    async def answer(queries: Sequence[Query], limits: Limits, finish: Finish) -> Response:
        return Response(await service.batcher.select(queries, limits, finish), media_type=_JSON)

    def post(path: str, body: Any, model: Any, summary: str) -> Callable[[Any], Any]:
        """Register a function of a body, whose model depends on the limits."""

        def register(endpoint: Any) -> Any:
            endpoint.__annotations__["body"] = body
            route = api.post(path, response_model=model, responses=refusals, summary=summary)
            return route(endpoint)

        return register

    either = answers.SelectionAnswer | answers.SelectionsAnswer

    @post("/v1/select", models.select, either, "Select passages for one query or for many")
    async def select(body: Any) -> Response:  # pyright: ignore
        is_many = hasattr(body, "queries")
        queries = service.built(body.queries if is_many else [body])
        return await answer(
            queries, body.limits(), answers.many_body if is_many else answers.one_body
        )

    @post("/v1/explain", models.one, answers.ExplanationAnswer, "Select passages, and say why")
    async def explain(body: Any) -> Response:  # pyright: ignore
        return await answer(service.built([body]), body.limits(), answers.explained_body)

    @post("/v1/compare", models.one, answers.ComparisonAnswer, "Select by other methods, too")
    async def compare(body: Any) -> Response:  # pyright: ignore
        return await answer(service.built([body]), body.limits(), answers.compared_body)

    async def rerank(body: Any) -> Response:
        limits: Limits = body.limits()

        def finish(found: list[PassageSelection]) -> bytes:
            with_texts = bool(body.return_documents)
            return answers.reranked_body(found[0], limits.k or 1, with_texts, service.selector)

        return await answer(service.built([body]), limits, finish)

    rerank_summary = "Rerank documents, as the clients of Cohere and Jina ask"
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        post(path, models.rerank, answers.RerankAnswer, rerank_summary)(rerank)

    @api.get("/healthz", response_model=answers.StatusAnswer)
    async def healthz() -> Any:  # pyright: ignore
        """Whether the process works."""
        return {"status": "ok", "version": dgn.__version__}

    @api.get(
        "/readyz",
        response_model=answers.StatusAnswer,
        responses={503: _refusal(503)},
    )
    async def readyz() -> Any:  # pyright: ignore
        """Whether requests should be sent here; not while the service stops."""
        if service.is_draining:
            raise busy("The service is stopping.", "stopping")
        return {"status": "ready", "version": dgn.__version__}

    may_refuse = {401, 503} if has_token else {503}
    described = {status: _refusal(status) for status in sorted(may_refuse)}

    @api.get("/metrics", response_class=PlainTextResponse, responses={**described})
    async def metrics() -> Response:  # pyright: ignore
        """Prometheus's text format."""
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    for path, (name, media_type) in _PAGE_FILES.items():
        content = (_PAGE / name).read_bytes()
        api.add_api_route(path, _file(content, media_type), include_in_schema=False)
    _handle_errors(api, service)
    return api


class _StrictRequest(Request):
    """A request whose body is JSON as RFC 8259 defines it, without NaN and half characters."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            value = json.loads(body, parse_constant=_refuse_constant)
            if b"\\u" in body:
                json.dumps(value, ensure_ascii=False).encode()
        except UnicodeDecodeError:
            reason = "It is not UTF-8"
        except UnicodeEncodeError:
            reason = "It contains half of a Unicode character"
        except RecursionError:
            reason = "It is nested too deeply"
        else:
            return value
        raise json.JSONDecodeError(reason, "", 0)


def _refuse_constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not a number of JSON", "", 0)


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and kind != _JSON:
                raise Refused(415, "Send the body as application/json.", reason="type")
            return await handle(_StrictRequest(request.scope, request.receive))

        return handle_strictly


def _file(content: bytes, media_type: str) -> Callable[[], Any]:
    async def get() -> Response:
        return Response(content, media_type=media_type, headers={"Cache-Control": "no-cache"})

    return get


def _refusal(status: int) -> dict[str, Any]:
    schema = answers.RefusalAnswer.model_json_schema()
    return {"description": EXPLAINED[status], "content": {MEDIA_TYPE: {"schema": schema}}}


def _refusals(has_token: bool) -> dict[int | str, dict[str, Any]]:
    wanted = set(EXPLAINED) if has_token else set(EXPLAINED) - {401}
    return {status: _refusal(status) for status in sorted(wanted)}


def _handle_errors(api: FastAPI, service: Service) -> None:
    def request_id(request: Request) -> str:
        return request.scope["state"]["request_id"]

    @api.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:  # pyright: ignore
        found = error.errors()
        if found and found[0]["type"] == "json_invalid":
            detail = f"The body is not JSON: {found[0]['ctx']['error']}."
            return refusal_response(400, detail, request_id(request))
        errors = [{"at": _pointer(one["loc"]), "message": _message(one)} for one in found[:20]]
        first = errors[0] if errors else {"at": "", "message": "The body is not valid"}
        detail = f"{first['at'] or 'The body'}: {first['message']}."
        return refusal_response(422, detail, request_id(request), errors=errors)

    @api.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:  # pyright: ignore
        detail = {
            404: "There is nothing at this path; /openapi.json describes the service.",
            405: "This path does not take this method; /openapi.json describes the service.",
        }.get(error.status_code, str(error.detail))
        return refusal_response(
            error.status_code, detail, request_id(request), headers=error.headers
        )

    @api.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:  # pyright: ignore
        service.metrics.count(error)
        return error.response(request_id(request))

    @api.exception_handler(Exception)
    async def failed(request: Request, _: Exception) -> Response:  # pyright: ignore
        detail = "The service failed; its log has the reason under the id of this request."
        return refusal_response(500, detail, request_id(request))


def _message(error: Mapping[str, Any]) -> str:
    known = {
        "string_pattern_mismatch": "it must contain a visible character",
        "extra_forbidden": "this field is not known",
        "dict_type": "it must be an object",
        "model_attributes_type": "it must be a string, or an object with text",
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
    if error["type"] == "missing":
        is_text = error["loc"][-1] in {"passages", "text"}
        return "it is missing" + (" (or documents, or sentences)" if is_text else "")
    text = known.get(error["type"])
    if text is None:
        return str(error["msg"]).removeprefix("Value error, ")
    return text.format(**error.get("ctx", {}))


def _pointer(index: Sequence[str | int]) -> str:
    """A JSON pointer; the names of variants are not part of the body."""
    parts = [str(one) for one in index[1:] if not str(one).startswith("?")]
    return "".join(f"/{one}" for one in parts)
