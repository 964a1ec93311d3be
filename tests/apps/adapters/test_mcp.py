"""The MCP server with the client of the official SDK, over real pipes."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="dgn[mcp] is not installed")

from retrieved import QUERY, TEXTS, WANTED


def with_client(ask: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "dgn", "mcp"])
        async with mcp.Client(server) as client:
            return await ask(client)

    return asyncio.run(run())


def test_the_tool() -> None:
    async def ask(client: Any) -> Any:
        tools = (await client.list_tools()).tools
        arguments = {"query": QUERY, "passages": TEXTS, "k": 2}
        good = await client.call_tool("select_evidence", arguments)
        wordless = await client.call_tool("select_evidence", arguments | {"query": "?!"})
        none = await client.call_tool("select_evidence", arguments | {"passages": []})
        for change in ({"query": "a " * 100_000}, {"titles": ["long " * 200_000] * len(TEXTS)}):
            large = await client.call_tool("select_evidence", arguments | change)
            assert large.is_error
        scores = {"query": "Xyzzy?", "scores": [0, 0, 0, 0, 1], "score_weight": 5, "k": 1}
        scored = await client.call_tool("select_evidence", arguments | scores)
        assert [one["index"] for one in scored.structured_content["selected"]] == [4]
        few = {"k": None, "stop_at": 0.4}
        stopped = await client.call_tool("select_evidence", arguments | few)
        assert len(stopped.structured_content["selected"]) == 1
        strict = await client.call_tool("select_evidence", arguments | {"min_relevance": 0.99})
        assert strict.structured_content["selected"] == []
        more = {"given": [TEXTS[1]], "pinned": [4], "receipt": True}
        complete = (await client.call_tool("select_evidence", arguments | more)).structured_content
        assert complete["selected"][0]["index"] == 4
        reasons = [one["reason"] for one in complete["receipt"]["passages"]]
        assert reasons[1] == "repeats_given"
        assert reasons[4] == "pinned"
        groups = {"groups": ["a"] * 5, "max_per_group": 1}
        limited = await client.call_tool("select_evidence", arguments | groups)
        assert len(limited.structured_content["selected"]) == 1
        short = await client.call_tool("select_evidence", arguments | {"scores": [1.0]})
        assert "1 entries for 5 passages" in short.content[0].text
        return tools, good, wordless, none

    tools, good, wordless, none = with_client(ask)
    assert [tool.name for tool in tools] == ["select_evidence"]
    assert tools[0].annotations.read_only_hint
    assert not good.is_error
    found = good.structured_content
    assert [one["index"] for one in found["selected"]] == WANTED
    assert found["selected"][0]["covers"] == ["bridge", "designed", "Clara", "Voss"]
    assert 0 < found["coverage"] <= 1
    assert 0 < found["certificate"] <= 1
    assert wordless.is_error
    assert "text with a word in it" in wordless.content[0].text
    assert none.is_error
