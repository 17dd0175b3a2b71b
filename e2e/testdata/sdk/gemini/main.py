"""What Google's Python package does against this server, unmodified. Environment: GOOGLE_GEMINI_BASE_URL, GEMINI_API_KEY, COVE_TEST_MODEL."""

import asyncio
import base64
import hashlib
import io
import os
import tempfile

from google import genai
from google.genai import errors, types

client = genai.Client()
model = os.environ["COVE_TEST_MODEL"]
config = types.GenerateContentConfig(tools=[types.Tool(code_execution=types.ToolCodeExecution())])


def kinds(parts):
    return [next(k for k in ("executable_code", "code_execution_result", "inline_data", "function_call", "text") if getattr(p, k) is not None) for p in parts]


def documented():
    response = client.models.generate_content(model=model, contents="compute, please", config=config)
    parts = response.candidates[0].content.parts
    assert kinds(parts) == ["executable_code", "code_execution_result", "text"], parts
    assert parts[0].executable_code.language == types.Language.PYTHON
    assert response.executable_code == "print(6*7)", response
    assert parts[1].code_execution_result.outcome == types.Outcome.OUTCOME_OK
    assert response.code_execution_result == "42\n", response
    assert parts[0].executable_code.id == parts[1].code_execution_result.id
    assert parts[2].text == "The answer is 42."
    assert response.candidates[0].finish_reason == types.FinishReason.STOP
    assert response.usage_metadata.prompt_token_count == 20 and response.usage_metadata.total_token_count == 30, response.usage_metadata
    assert response.model_version and response.response_id


def figure():
    response = client.models.generate_content(model=model, contents="plot, please", config=config)
    parts = response.candidates[0].content.parts
    assert kinds(parts) == ["executable_code", "code_execution_result", "inline_data", "text"], kinds(parts)
    assert parts[2].inline_data.mime_type == "image/png" and parts[2].inline_data.data.startswith(b"\x89PNG"), parts[2]


def failed():
    response = client.models.generate_content(model=model, contents="divide, please", config=config)
    result = response.candidates[0].content.parts[1].code_execution_result
    assert result.outcome == types.Outcome.OUTCOME_FAILED and "ZeroDivisionError" in result.output, result


def chat():
    talk = client.chats.create(model=model, config=config)
    talk.send_message("set the var")
    assert talk.send_message("recall it").text == "It is 42."  # the variable is there in the next request
    assert [c.role for c in talk.get_history(curated=True)] == ["user", "model"] * 2


def streamed():
    talk = client.chats.create(model=model, config=config)
    chunks = list(talk.send_message_stream("compute, please"))
    found = [k for c in chunks for k in kinds(c.candidates[0].content.parts)]
    assert found[:2] == ["executable_code", "code_execution_result"] and set(found[2:]) == {"text"}, found
    assert "".join(c.text or "" for c in chunks[2:]) == "The answer is 42."
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP and chunks[-1].usage_metadata.total_token_count == 30
    assert "".join(c.text or "" for c in talk.send_message_stream("greet me")) == "Hello!"
    assert len(talk.get_history(curated=True)) > 3  # nothing of it is taken for broken


async def concurrent():
    async def one():
        stream = await client.aio.models.generate_content_stream(model=model, contents="greet me", config=None)
        return "".join([c.text async for c in stream])

    assert await asyncio.gather(one(), one()) == ["Hello!"] * 2


def files():
    table = types.Part.from_bytes(data=b"a,b\n1,2\n", mime_type="text/csv")
    response = client.models.generate_content(model=model, contents=[table, "read what is attached"], config=config)
    assert response.code_execution_result == "a,b\n1,2\n", response


def uploads():
    table = client.files.upload(file=io.BytesIO(b"a,b\n1,2\n"), config={"display_name": "My table", "mime_type": "text/csv"})
    assert table.name.startswith("files/") and table.display_name == "My table" and table.mime_type == "text/csv" and table.size_bytes == 8, table
    assert table.state == types.FileState.ACTIVE and table.expiration_time > table.create_time, table
    response = client.models.generate_content(model=model, contents=[table, "read what is attached"], config=config)
    assert response.code_execution_result == "a,b\n1,2\n", response
    large = os.urandom(9 << 20)  # in two pieces
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(large)
        file.flush()
        stored = client.files.upload(file=file.name, config={"mime_type": "application/octet-stream"})
    assert stored.size_bytes == len(large) and base64.b64decode(stored.sha256_hash) == hashlib.sha256(large).digest(), stored
    assert client.files.get(name=stored.name).uri == stored.uri
    names = [f.name for f in client.files.list(config={"page_size": 1})]
    assert stored.name in names and table.name in names and len(set(names)) == len(names), names
    for one in (stored, table):
        client.files.delete(name=one.name)
    try:
        client.files.get(name=table.name)
    except errors.ClientError as e:
        assert e.code == 404 and e.status == "NOT_FOUND", e
    else:
        raise AssertionError("a file that was deleted is there")


def stops():
    answer = client.models.generate_content(model=model, contents="greet me", config={"stop_sequences": ["STOP"]})
    assert answer.text == "Hello!", answer


def functions():
    asked = []

    def get_weather(city: str) -> str:
        """Says what the weather is.

        Args:
            city: where
        """
        asked.append(city)
        return "sunny"

    response = client.models.generate_content(model=model, contents="the weather?", config=types.GenerateContentConfig(tools=[get_weather]))
    assert asked == ["Rome"] and response.text == "It is sunny in Rome.", (asked, response)


def refused():
    stranger = genai.Client(api_key="cove_wrong")
    for what, code, status, words in (
        (lambda: client.models.generate_content(model=model, contents="limited"), 429, "RESOURCE_EXHAUSTED", ""),
        (lambda: client.models.generate_content(model=model, contents="x", config={"tools": [{"google_search": {}}]}), 400, "INVALID_ARGUMENT", "googleSearch"),
        (lambda: client.models.get(model="nobody"), 404, "NOT_FOUND", "nobody"),
        (lambda: stranger.models.generate_content(model=model, contents="x"), 401, "UNAUTHENTICATED", ""),
        (lambda: client.models.embed_content(model=model, contents="x"), 501, "UNIMPLEMENTED", "batchEmbedContents"),
    ):
        try:
            what()
        except errors.APIError as e:
            assert (e.code, e.status) == (code, status) and words in e.message, e
            assert isinstance(e, errors.ServerError if code >= 500 else errors.ClientError)
        else:
            raise AssertionError(f"{status}: nothing was refused")


def models():
    names = [m.name for m in client.models.list()]
    assert names and client.models.get(model=names[0]).name == names[0], names
    assert client.models.count_tokens(model=model, contents="What is the sum of the first 50 prime numbers?").total_tokens > 5


for check in (documented, figure, failed, chat, streamed, files, uploads, stops, functions, refused, models):
    check()
    print("ok", check.__name__, flush=True)
asyncio.run(concurrent())
print("ok all")
