"""Uses cove as a server of the Model Context Protocol with the protocol's Python SDK."""

import asyncio
import os

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

URL, KEY = os.environ["COVE_TEST_URL"], os.environ["COVE_TEST_KEY"]


async def main():
    seen = []

    async def told(progress, total, message):
        seen.append(message)

    async with httpx.AsyncClient(headers={"Authorization": "Bearer " + KEY}, timeout=120) as http:
        async with streamable_http_client(URL, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as client:
                about = await client.initialize()
                assert about.server_info.name == "cove", about
                tools = {tool.name for tool in (await client.list_tools()).tools}
                assert tools == {"python", "install_packages", "list_files", "read_file", "write_file", "list_sessions", "delete_session"}, tools
                first = await client.call_tool("python", {"code": "x = 20\nprint('on its way', flush=True)\nopen('out.txt', 'w').write('words')\nx + 1"}, progress_callback=told)
                assert not first.is_error and first.structured_content["result"] == "21", first
                session = first.structured_content["session"]
                again = await client.call_tool("python", {"code": "print(x)", "session": session})
                assert again.content[0].text == "20\n", again
                wrong = await client.call_tool("python", {"code": "1 / 0", "session": session})
                assert wrong.is_error and "ZeroDivisionError" in wrong.content[0].text, wrong
                link = next(part for part in first.content if part.type == "resource_link")
                read = await client.read_resource(link.uri)
                assert read.contents[0].text == "words", read
                gone = await client.call_tool("delete_session", {"session": session})
                assert not gone.is_error, gone
                assert "on its way" in seen, seen
    print("ok mcp (Python)")


asyncio.run(main())
