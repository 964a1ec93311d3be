"""`dgn mcp`: one tool for assistants, `select_evidence`; needs `dgn[mcp]`."""

# No `from __future__ import annotations`: the SDK reads the annotations of the tool.
from typing import Annotated

from dgn.apps.adapters._chosen import chosen_of
from dgn.errors import DGNError, require_extra
from dgn.selector import Selector

require_extra("dgn mcp", package="mcp", extra="mcp")

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

import dgn

MOST_PASSAGES = 2_000
MOST_CHARACTERS = 1_600_000
LONGEST_QUERY = 5_000
MOST_SELECTED = 100


class Evidence(BaseModel):
    """A selected passage."""

    index: int = Field(description="Its number among the passages, from 0.")
    text: str
    relevance: float = Field(description="The share of the query that it covers by itself.")
    covers: list[str] = Field(description="Words of the query that it adds.")


class SelectedEvidence(BaseModel):
    """The selected passages, best first."""

    selected: list[Evidence]
    coverage: float | None = Field(description="The share of the query that they cover together.")
    certificate: float = Field(description="At least this share of the best score was reached.")
    gap: list[str] = Field(description="Words of the query that are hardly covered.")


def create_server(selector: Selector) -> MCPServer:
    """The server with its tool; `server.run("stdio")` serves it."""
    server = MCPServer(
        "dgn",
        version=dgn.__version__,
        instructions="Use select_evidence to choose, out of many passages, the few that together "
        "cover a claim or a question.",
    )

    @server.tool(
        title="Select evidence",
        description="Select, out of many passages, the few that together cover a claim or a "
        "question. Coverage is not support: a passage that denies a claim covers it, too.",
        annotations=ToolAnnotations(
            read_only_hint=True, idempotent_hint=True, open_world_hint=False
        ),
    )
    def select_evidence(  # pyright: ignore[reportUnusedFunction]
        query: Annotated[
            str, Field(description="A claim or a question.", max_length=LONGEST_QUERY)
        ],
        passages: Annotated[
            list[str], Field(description="The passages.", min_length=1, max_length=MOST_PASSAGES)
        ],
        titles: Annotated[
            list[str] | None,
            Field(description="The title of the page of each passage.", max_length=MOST_PASSAGES),
        ] = None,
        k: Annotated[
            int | None,
            Field(
                description="The most to select: 5 by default, or 100 if max_tokens is given.",
                ge=1,
                le=MOST_SELECTED,
            ),
        ] = None,
        max_tokens: Annotated[
            float | None, Field(description="The most tokens of all selected passages.", gt=0)
        ] = None,
        given: Annotated[
            list[str] | None,
            Field(
                description="Texts that are already known, such as the conversation so far; "
                "nothing that repeats them is selected.",
                max_length=MOST_PASSAGES,
            ),
        ] = None,
        breadth: Annotated[
            float | None,
            Field(
                description="From 0, where only the words of the query count, to 1, where the "
                "selection represents all passages: more finds different opinions and no copies.",
                ge=0,
                le=1,
            ),
        ] = None,
    ) -> SelectedEvidence:
        if sum(map(len, [*passages, *(titles or ()), *(given or ())])) > MOST_CHARACTERS:
            raise ToolError(f"The texts have more than {MOST_CHARACTERS:,} characters.")
        if k is None and max_tokens is not None:
            k = MOST_SELECTED
        try:
            selection = selector.select(
                query,
                passages,
                titles=titles,
                given=given,
                k=k,
                max_tokens=max_tokens,
                breadth=breadth,
            )
        except DGNError as error:
            raise ToolError(str(error)) from None
        selected = [
            Evidence(
                index=index,
                text=passages[index],
                relevance=metadata["dgn_relevance"],
                covers=metadata["dgn_covers"],
            )
            for index, metadata in chosen_of(selection)
        ]
        return SelectedEvidence(
            selected=selected,
            coverage=selection.coverage,
            certificate=selection.certificate.ratio,
            gap=list(selection.explain().gap),
        )

    return server
