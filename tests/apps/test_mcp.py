"""The MCP server with the client of the official SDK, over real pipes."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="dgn[mcp] is not installed")

from retrieved import QUERY, TEXTS, WANTED


def with_client(ask: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "dgn", "mcp"], env=dict(os.environ)
        )
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
        many = await client.call_tool("select_evidence", arguments | {"k": None, "max_tokens": 999})
        assert len(many.structured_content["selected"]) == len(TEXTS)
        again = await client.call_tool("select_evidence", arguments | {"given": [TEXTS[1]]})
        assert 1 not in [one["index"] for one in again.structured_content["selected"]]
        short = await client.call_tool("select_evidence", arguments | {"titles": ["A"]})
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
