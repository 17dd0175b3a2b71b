"""Has the protocol's Python SDK find the authorization server of cove, register, get a token, and run code with it."""

import asyncio
import os
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client, ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL = os.environ["COVE_TEST_URL"]


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def main():
    storage, came = Storage(), []

    async def redirect(url):
        """The user's browser, and a user who agrees."""
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url)
        assert answer.status_code == 302, answer.text
        came.append(parse_qs(urlparse(answer.headers["location"]).query))

    async def callback():
        said = {name: values[0] for name, values in came[-1].items()}
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))

    provider = OAuthClientProvider(
        server_url=URL,
        client_metadata=OAuthClientMetadata(client_name="test", redirect_uris=["http://127.0.0.1:1/callback"]),
        storage=storage,
        redirect_handler=redirect,
        callback_handler=callback,
    )
    async with httpx2.AsyncClient(auth=provider, timeout=120) as http:
        async with streamable_http_client(URL, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as client:
                await client.initialize()
                answer = await client.call_tool("python", {"code": "x = 6 * 7\nx"})
                assert not answer.is_error and answer.structured_content["result"] == "42", answer
                session = answer.structured_content["session"]
        assert len(came) == 1 and storage.client.client_id and storage.tokens.scope == "mcp", (came, storage.tokens)
        async with Client(streamable_http_client(URL, http_client=http)) as client:
            assert client.protocol_version == "2026-07-28", client.protocol_version
            answer = await client.call_tool("python", {"code": "x + 1", "session": session})
            assert answer.structured_content["result"] == "43", answer
            await client.call_tool("delete_session", {"session": session})
    assert len(came) == 1, came
    print("ok oauth (Python)")


asyncio.run(main())
