"""An MCP client that starts `dgn mcp` and calls its tool, as an assistant would.

In a clone: pip install '.[mcp]' && python -m examples.mcp_client
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters

from examples.pages import QUESTION, sentences


async def main() -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "dgn", "mcp"])
    async with Client(server) as client:
        tools = await client.list_tools()
        print("tools:", *(tool.name for tool in tools.tools))
        passages = [one.text for one in sentences()]
        arguments = {"query": QUESTION, "passages": passages, "k": 2}
        answer = await client.call_tool("select_evidence", arguments)
        for one in answer.structured_content["selected"]:
            print(one["text"])


asyncio.run(main())
