"""Uses cove as a server of the Model Context Protocol with the protocol's Python SDK."""

import asyncio
import os

import httpx
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

URL, KEY = os.environ["COVE_TEST_URL"], os.environ["COVE_TEST_KEY"]


async def every_tool(client, session):
    async def call(name, **arguments):
        answer = await client.call_tool(name, {"session": session, **arguments})
        assert not answer.is_error, answer
        return answer.content[0].text

    assert "wrote in/a.txt" in await call("write_file", path="in/a.txt", text="größe")
    assert await call("read_file", path="in/a.txt") == "größe"
    assert "in/a.txt (7 bytes)" in await call("list_files", path="in")
    assert await call("install_packages", packages=["numpy"])
    assert session in (await client.call_tool("list_sessions", {})).content[0].text


async def asks(client, session, questions):
    """Code that calls input() asks the user."""
    answer = await client.call_tool("python", {"code": "print('Hello', input('Your name? '))", "session": session})
    assert not answer.is_error and answer.content[0].text == "Hello Ada\n", answer
    assert "Your name?" in questions[-1], questions
    code = "try:\n    input()\nexcept EOFError:\n    print('nothing')\nimport getpass\ntry:\n    getpass.getpass()\nexcept EOFError:\n    print('no secret')"
    answer = await client.call_tool("python", {"code": code, "session": session})
    assert answer.content[0].text == "nothing\nno secret\n", answer


async def main():
    seen = []

    async def told(progress, total, message):
        seen.append(message)

    questions = []

    async def asked(context, params):
        questions.append(params.message)
        if len(questions) % 2:
            return ElicitResult(action="accept", content={"value": "Ada"})
        return ElicitResult(action="decline")

    async with httpx.AsyncClient(headers={"Authorization": "Bearer " + KEY}, timeout=120) as http:
        async with streamable_http_client(URL, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1], elicitation_callback=asked) as client:
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
                await every_tool(client, session)
                await asks(client, session, questions)
                gone = await client.call_tool("delete_session", {"session": session})
                assert not gone.is_error, gone
                assert "on its way" in seen, seen
        # The newest version has no sessions of the protocol, and questions as results.
        async with Client(streamable_http_client(URL, http_client=http), elicitation_callback=asked) as client:
            assert client.protocol_version == "2026-07-28", client.protocol_version
            made = await client.call_tool("python", {"code": "1"})
            session = made.structured_content["session"]
            await every_tool(client, session)
            await asks(client, session, questions)
            await client.call_tool("delete_session", {"session": session})
    assert len(questions) == 4, questions
    print("ok mcp (Python)")


asyncio.run(main())
