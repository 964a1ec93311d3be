"""The description of the service, for /openapi.json: FastAPI makes it from the models."""

# No `from __future__ import annotations`: FastAPI could not see the models inside a function.
from typing import Any

from fastapi import FastAPI
from starlette.responses import PlainTextResponse

import dgn
from dgn.apps.service import answers
from dgn.apps.service.answering import RERANK_PATHS
from dgn.apps.service.refusals import EXPLAINED, MEDIA_TYPE, ServiceLimits
from dgn.apps.service.requests import request_models


def describe(limits: ServiceLimits, *, has_token: bool) -> dict[str, Any]:
    """The OpenAPI document of a service with these limits."""
    models = request_models(limits)
    api = FastAPI(
        title="dgn",
        version=dgn.__version__,
        description="Select the few passages that together cover a query, and say why.",
    )
    wanted = set(EXPLAINED) if has_token else set(EXPLAINED) - {401}
    refusals = {status: _refusal(status) for status in sorted(wanted)}

    def post(path: str, body: Any, model: Any, summary: str) -> None:
        def endpoint(body: Any) -> Any:
            del body

        # The name is the beginning of the operation's id.
        endpoint.__name__ = path.strip("/").rpartition("/")[2]
        endpoint.__annotations__["body"] = body
        api.post(path, response_model=model, responses={**refusals}, summary=summary)(endpoint)

    either = answers.SelectionAnswer | answers.SelectionsAnswer
    post("/v1/select", models.select, either, "Select passages for one query or for many")
    post("/v1/explain", models.one, answers.ExplanationAnswer, "Select passages, and say why")
    post("/v1/compare", models.one, answers.ComparisonAnswer, "Select by other methods, too")
    for path in RERANK_PATHS:
        summary = "Rerank documents, as the clients of Cohere and Jina ask"
        post(path, models.rerank, answers.RerankAnswer, summary)

    unready = {503: _refusal(503)}

    @api.get("/healthz", response_model=answers.StatusAnswer)
    def healthz() -> Any:  # pyright: ignore[reportUnusedFunction]
        """Whether the process works."""

    @api.get("/readyz", response_model=answers.StatusAnswer, responses={**unready})
    def readyz() -> Any:  # pyright: ignore[reportUnusedFunction]
        """Whether requests should be sent here; not while the service starts or stops."""

    may_refuse = {401, 503} if has_token else {503}
    described = {status: _refusal(status) for status in sorted(may_refuse)}

    @api.get("/metrics", response_class=PlainTextResponse, responses={**described})
    def metrics() -> Any:  # pyright: ignore[reportUnusedFunction]
        """Prometheus's text format."""

    return api.openapi()


def _refusal(status: int) -> dict[str, Any]:
    schema = answers.RefusalAnswer.model_json_schema()
    return {"description": EXPLAINED[status], "content": {MEDIA_TYPE: {"schema": schema}}}
