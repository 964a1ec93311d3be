"""The service as an ASGI application: paths, and what they answer.

A request is parsed, answered and written in a thread, so that the event loop stays free for the
others: the kernels release the GIL.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse
from starlette.staticfiles import StaticFiles

import dgn
from dgn.apps.service import metrics as measured
from dgn.apps.service import models
from dgn.apps.service.limits import (
    ANY_HOST,
    EXPLAINED,
    MEDIA_TYPE,
    Guard,
    Refused,
    ServiceLimits,
    busy,
)
from dgn.core import Selections, top_k
from dgn.errors import InvalidInput
from dgn.evaluation import Bm25, Diversified, PooledTopK
from dgn.parallel import available_cores
from dgn.selector import Limits, PassageSelection, Selector
from dgn.selector.coverage import coverage_after
from dgn.text import PooledVectors, WordLlamaVectors
from dgn.text.languages import written_words
from dgn.text.query import Query

_PAGE = Path(__file__).parent / "page"
_RERANK_PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")
_POSTS = ("/v1/select", "/v1/explain", "/v1/compare", *_RERANK_PATHS)
_GETS = ("/", "/docs", "/healthz", "/readyz", "/metrics", "/openapi.json")

_CHARACTERS_PER_TOKEN = 8
"""Texts with more characters than that per token of the limit are refused before they are read."""

_DIVERSITY = 0.3
"""Of MMR, as in docs/breadth.md."""


def create_app(
    selector: Selector,
    limits: ServiceLimits | None = None,
    *,
    token: str | None = None,
    hosts: Collection[str] = (ANY_HOST,),
    threads: int | None = None,
) -> FastAPI:
    """Make the service, for uvicorn or any other ASGI server.

    Args:
        selector: Selects for every request.
        limits: How much a request may be, and how many may wait.
        token: A bearer token that requests must have.
        hosts: The names that a request may use for this machine; "*" for any.
        threads: How many requests are answered at the same time; by default one per core, and at
            least two, so that a large one does not keep all others waiting.
    """
    most = limits or ServiceLimits()
    service = _Service(selector, most, threads or max(2, available_cores()))
    app = FastAPI(
        title="dgn",
        version=dgn.__version__,
        description="Select the few passages that together cover a query, and say why.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=service.live,
    )
    app.router.route_class = _ThreadedRoute
    app.state.service, app.state.is_draining = service, False
    app.add_middleware(
        Guard,
        limits=most,
        metrics=service.metrics,
        token=token,
        hosts=hosts,
        posts=_POSTS,
        gets=_GETS,
        closed=("/metrics",),
    )
    app.add_exception_handler(HTTPException, _not_here)
    status = models.described(models.Status)
    wanted = set(EXPLAINED) if token else set(EXPLAINED) - {401}
    refusals: dict[int | str, dict[str, Any]] = {
        status: {
            "description": EXPLAINED[status],
            "model": models.described(models.Problem),
            "content": {MEDIA_TYPE: {}},
        }
        for status in sorted(wanted)
    }
    for path, answer, summary in (
        ("/v1/select", service.select, "Select passages for one query or for many"),
        ("/v1/explain", service.explain, "Select passages, and say why"),
        ("/v1/compare", service.compare, "Select by other methods, too"),
        *((path, service.rerank, "Rerank documents, as the clients of Cohere and Jina ask")
          for path in _RERANK_PATHS),
    ):  # fmt: skip
        name = path.strip("/").replace("/", "_")
        model = models.described(get_type_hints(answer)["return"])
        route = app.post(
            path, summary=summary, responses=refusals, operation_id=name, response_model=model
        )
        route(answer)

    @app.get("/healthz", response_model=status)
    async def healthz() -> models.Status:  # pyright: ignore[reportUnusedFunction]
        """Whether the process works."""
        return {"status": "ok", "version": dgn.__version__}

    @app.get("/readyz", response_model=status, responses={503: refusals[503]})
    async def readyz() -> models.Status:  # pyright: ignore[reportUnusedFunction]
        """Whether requests should be sent here; not while the service stops."""
        if app.state.is_draining:
            raise busy("The service is stopping.", "stopping")
        return {"status": "ready", "version": dgn.__version__}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:  # pyright: ignore[reportUnusedFunction]
        """Prometheus's text format."""
        return Response(service.metrics.to_text(), media_type=measured.MEDIA_TYPE)

    app.get("/", include_in_schema=False)(_file("index.html"))
    app.get("/docs", include_in_schema=False)(_file("docs.html"))
    app.mount("/page", StaticFiles(directory=_PAGE))
    _name_limits(app.openapi(), most)
    return app


def _name_limits(document: dict[str, Any], limits: ServiceLimits) -> None:
    """Write the limits of this service into its description."""
    counts = ("k", "max_per_document", "max_per_group")
    lists = ("passages", "documents", "embeddings", "given", "groups")
    most = {"queries": limits.queries, "pinned": limits.k, **dict.fromkeys(lists, limits.passages)}
    for schema in document["components"]["schemas"].values():
        for name, field in schema.get("properties", {}).items():
            for one in field.get("anyOf", [field]):
                if one.get("type") == "integer" and name in counts:
                    one["maximum"] = limits.k
                elif one.get("type") == "array" and name in most:
                    one["maxItems"] = most[name]


def _file(name: str) -> Callable[[], Any]:
    async def answer() -> Response:
        return FileResponse(_PAGE / name)

    return answer


def _not_here(request: Request, error: Exception) -> Response:
    """What the framework refuses: paths and methods."""
    status = cast("HTTPException", error).status_code
    if status == 405:
        detail = "This path does not take this method; see /docs."
        allow = "POST" if request.url.path in _POSTS else "GET, HEAD"
        raise Refused(405, detail, headers={"Allow": allow})
    raise Refused(status, "There is nothing at this path; see /docs.")


class _ThreadedRoute(APIRoute):
    """A route whose body is parsed and answered in a thread of the service."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        if self.body_field is None:
            return super().get_route_handler()
        adapter = TypeAdapter[Any](get_type_hints(self.endpoint, include_extras=True)["body"])

        async def handle(request: Request) -> Response:
            service: _Service = request.app.state.service
            content = await service.answer(adapter, self.endpoint, await request.body())
            return Response(content, media_type="application/json")

        return handle


class _Service:
    """Answers requests.

    Args:
        selector: Selects for every request.
        limits: How much a request may be.
        threads: How many requests are answered at the same time.
    """

    def __init__(self, selector: Selector, limits: ServiceLimits, threads: int) -> None:
        self.metrics = measured.Metrics()
        self._selector, self._limits = selector, limits
        self._tokens = limits.tokens or selector.encoder.request_tokens
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="dgn-select")
        self._waiting = 0

    @asynccontextmanager
    async def live(self, _: FastAPI) -> AsyncGenerator[None]:
        """Load what is loaded when it is first used, so that no client waits for it."""
        first = models.Select(query="a first question", passages=["A first passage.", "é"])
        await asyncio.get_running_loop().run_in_executor(self._threads, self.explain, first)
        yield
        self._threads.shutdown()

    async def answer(
        self, adapter: TypeAdapter[Any], endpoint: Callable[[Any], Any], content: bytes
    ) -> bytes:
        """The answer to a body, from a thread."""
        if self._waiting >= self._limits.waiting_requests:
            most = self._limits.waiting_requests
            raise busy(f"More than {most} requests are in progress; try again later.", "requests")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, self._answered, adapter, endpoint, content
            )
        finally:
            self._waiting -= 1

    def _answered(
        self, adapter: TypeAdapter[Any], endpoint: Callable[[Any], Any], content: bytes
    ) -> bytes:
        body = models.parsed(adapter, content, self._limits)
        try:
            answer = endpoint(body)
        except InvalidInput as error:
            raise Refused(422, str(error)) from None
        return to_json(answer)

    def select(self, body: models.SelectBody) -> models.Selected | models.SelectedMany:
        """Select for one query, or for each of `queries`."""
        if isinstance(body, models.SelectMany):
            return {"selections": [_row(one, body) for one in self._selected(body.queries, body)]}
        return _row(self._selected([body], body)[0], body)

    def explain(self, body: models.Select) -> models.Explained:
        """Select, and say why each passage was selected or not."""
        selection = self._selected([body], body)[0]
        passages: list[models.ReadPassage] = [
            {
                "text": one.text,
                "title": one.title,
                "document": one.document,
                "position": one.position,
                "start": one.start,
                "end": one.end,
            }
            for one in selection.query.passages
        ]
        row = _row(selection, body, reasons=True)
        return {"selection": row, "passages": passages, "text": str(selection.explain())}

    def compare(self, body: models.Select) -> models.Compared:
        """Select by other methods, too."""
        if body.query is None:
            raise Refused(422, "/query: methods are compared for a query; it must not be null.")
        return {"methods": _other_methods(self._selected([body], body)[0])}

    def rerank(self, body: models.Rerank) -> models.Reranked:
        """Documents in the order of selection, then those that repeat others."""
        question = models.Question(query=body.query, passages=list(body.texts()))
        count = min(body.top_n or len(body.documents), len(body.documents))
        (query,) = self._queries([question])
        (selection,) = self._selector.select_queries([query], Limits(k=count))
        texts = query.texts
        order = [*selection.indices, *sorted(set(range(len(texts))) - set(selection.indices))]
        first = selection.gains[0] if selection.gains else 0.0
        best = selection.relevance[order[0]]
        scores = [best * gain / first if first > 0 else 0.0 for gain in selection.gains]
        results: list[models.RankedDocument] = []
        least = 1.0
        for place, index in enumerate(order[:count]):
            least = min(least, max(0.0, scores[place] if place < len(scores) else 0.0))
            row: models.RankedDocument = {"index": index, "relevance_score": least}
            if body.return_documents:
                row["document"] = {"text": texts[index]}
            results.append(row)
        tokens = sum(self._selector.encoder.count_tokens([query.text, *texts]))
        return {
            "id": uuid.uuid4().hex,
            "object": "list",
            "model": "dgn",
            "results": results,
            "usage": {"total_tokens": tokens},
            "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 0}},
        }

    def _selected(
        self, questions: Sequence[models.Question], body: models.Select | models.SelectMany
    ) -> list[PassageSelection]:
        limits = body.limits()
        return list(self._selector.select_queries(self._queries(questions), limits))

    def _queries(self, questions: Sequence[models.Question]) -> list[Query]:
        """The queries of a request, within the limits; what is cheap to check comes first."""
        characters = sum(one.characters() for one in questions)
        most = _CHARACTERS_PER_TOKEN * self._tokens
        if characters > most:
            raise _too_many("texts", characters, "characters", most, "tokens")
        queries: list[Query] = []
        for number, one in enumerate(questions):
            index = f"queries[{number}]: " if len(questions) > 1 else ""
            # In Chinese every character is a word; passages may decide that it is Chinese.
            text = one.query or ""
            words = max(len(written_words(text, code)) for code in ("en", "zh"))
            if words > self._limits.query_words:
                most = self._limits.query_words
                raise Refused(
                    422,
                    f"{index}The query has {words:,} words; the limit is {most:,}.",
                    reason="query",
                )
            try:
                queries.append(one.query_of())
            except InvalidInput as error:
                raise Refused(422, f"{index}{error}") from None
            count, most = len(queries[-1].passages), self._limits.passages
            if count > most:
                raise _too_many("documents", count, "sentences", most, "passages", index)
        texts = [
            text
            for query in queries
            for text in (query.text, *query.texts, *(one.text for one in query.given))
        ]
        if sum(map(len, texts)) > self._tokens:  # a token has at least one character
            count = sum(self._selector.encoder.count_tokens(texts))
            if count > self._tokens:
                raise _too_many("texts", count, "tokens", self._tokens, "tokens")
        self.metrics.passages.inc(sum(len(query.passages) for query in queries))
        return queries


def _too_many(what: str, count: int, unit: str, most: int, reason: str, index: str = "") -> Refused:
    detail = f"{index}The {what} have {count:,} {unit}; the limit is {most:,}."
    return Refused(422, detail, reason=reason)


def _row(
    selection: PassageSelection,
    body: models.Select | models.SelectMany,
    *,
    reasons: bool = False,
) -> models.Selected:
    row: Any = selection.to_dict(reasons=reasons or body.reasons)
    if selection.query.id:
        row = {"id": selection.query.id, **row}
    if body.context:
        row["context"] = selection.context()
    return row


@cache
def _vectors() -> PooledVectors:
    return WordLlamaVectors()


def _other_methods(selection: PassageSelection) -> list[models.ComparedMethod]:
    """As many passages as dgn selected, by other methods, and how much of the query they cover."""
    count = len(selection)
    chosen: list[tuple[str, str, Sequence[int]]] = [
        ("dgn", "the passages that together cover most", selection.indices)
    ]
    if count:
        query = selection.query
        f, items = selection.objective, selection.items
        gains = f.gains(items, f.empty(items))
        alone = cast("Selections", top_k(gains, count, items.mask))[0]
        by_words = Bm25(stemmed=True).select([query], count)[0]
        by_vectors = PooledTopK(_vectors()).select([query], count)[0]
        diverse = Diversified("mmr", _vectors(), _DIVERSITY).select([query], count)[0]
        chosen += [
            ("one by one", "the same function on each passage alone: no search", alone.indices),
            ("BM25", "top-k by BM25 with stems", by_words),
            ("top-k", "top-k by cosine of word vectors", by_vectors),
            ("MMR", f"MMR of pyversity, diversity {_DIVERSITY:g}, same vectors", diverse),
        ]
    rows: list[models.ComparedMethod] = []
    twins = selection.query.twins
    for method, description, indices in chosen:
        kept = [int(index) for index in indices if index >= 0]
        # A repeated passage is covered by the one that it repeats.
        covered = coverage_after(selection.objective, selection.items, [twins[i] for i in kept])
        coverage = None if covered is None else float(covered[-1])
        rows.append(
            {"method": method, "description": description, "indices": kept, "coverage": coverage}
        )
    return rows
