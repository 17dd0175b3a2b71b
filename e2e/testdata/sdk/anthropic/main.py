"""Anthropic's published client against a server: its documented programs for code execution, unchanged but for the base URL in the environment."""

import base64
import json

import anthropic
from anthropic import Anthropic

MODEL = "claude-opus-4-6"  # the server has none of Anthropic's models, so its usual one answers
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
client = Anthropic(max_retries=0, timeout=300)


def code_tool(version="20260120"):
    return {"type": "code_execution_" + version, "name": "code_execution"}


def ask(messages, **more):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return client.messages.create(model=MODEL, max_tokens=1024, messages=messages, **{"tools": [code_tool()], **more})


def result(message):
    (block,) = [b for b in message.content if b.type == "code_execution_tool_result"]
    (use,) = [b for b in message.content if b.type == "server_tool_use"]
    assert use.name == "code_execution" and use.id == block.tool_use_id, message
    return block.content


# All versions of the tool; the history, with its blocks, is sent back as it came, and the container goes on.
message = ask("compute")
assert result(message).stdout == "42\n" and result(message).return_code == 0, message
assert message.content[-1].text == "The answer is 42." and message.stop_reason == "end_turn" and message.usage.output_tokens > 0, message
for version in ("20250522", "20260521"):
    assert result(client.beta.messages.create(model=MODEL, max_tokens=99, betas=["code-execution-2025-08-25"], messages=[{"role": "user", "content": "compute"}],
                                              tools=[code_tool(version)], container=message.container.id)).stdout == "42\n"
kept = ask("set the var", container=message.container.id)
assert kept.container.id == message.container.id and kept.container.expires_at, kept
again = ask([{"role": "user", "content": "set the var"}, {"role": "assistant", "content": kept.content}, {"role": "user", "content": "recall"}], container=kept.container.id)
assert again.content[-1].text == "It is 42.", again
print("ok messages")

# A stream, and the files that come of it.
names = []
with client.messages.stream(model=MODEL, max_tokens=1024, tools=[code_tool()], messages=[{"role": "user", "content": "plot"}]) as stream:
    for event in stream:
        names.append(event.type)
    message = stream.get_final_message()
assert names[0] == "message_start" and names[-1] == "message_stop", names
(use,) = [b for b in message.content if b.type == "server_tool_use"]
assert "plot.txt" in use.input["code"] and message.container.id and message.stop_reason == "end_turn", message
files = {}
for output in result(message).content:
    found = client.beta.files.retrieve_metadata(output.file_id)
    files[found.filename] = client.beta.files.download(output.file_id).read()
assert files == {"plot.txt": b"plotted", "figure_1.png": base64.b64decode(PIXEL)}, files
print("ok stream")

# A file of the client's.
uploaded = client.beta.files.upload(file=("data.csv", b"a,b\n1,2\n", "text/csv"))
assert uploaded.filename == "data.csv" and uploaded.mime_type == "text/csv" and uploaded.size_bytes == 8, uploaded
message = ask([{"role": "user", "content": [{"type": "text", "text": "read the file"}, {"type": "container_upload", "file_id": uploaded.id}]}])
assert "1,2" in result(message).stdout, message
assert uploaded.id in [f.id for f in client.beta.files.list(limit=100)]
assert client.beta.files.delete(uploaded.id).type == "file_deleted"
print("ok files")

# Commands and files: the programs of Anthropic's documentation.
SHELL = [code_tool("20250825")]


def extract_file_ids(response):
    file_ids = []
    for item in response.content:
        if item.type == "bash_code_execution_tool_result":
            content_item = item.content
            if content_item.type == "bash_code_execution_result":
                for file in content_item.content:
                    if hasattr(file, "file_id"):
                        file_ids.append(file.file_id)
    return file_ids


response = client.beta.messages.create(model=MODEL, betas=["code-execution-2025-08-25", "files-api-2025-04-14"], max_tokens=4096, tools=SHELL,
                                       messages=[{"role": "user", "content": "Create a matplotlib visualization and save it as output.png"}])
(file_id,) = extract_file_ids(response)
assert client.beta.files.retrieve_metadata(file_id).filename == "output.png"
assert client.beta.files.download(file_id).read().startswith(b"\x89PNG"), response
response1 = ask("Write a file with a random number and save it to '/tmp/number.txt'", tools=SHELL)
response2 = ask("Read the number from '/tmp/number.txt' and calculate its square", tools=SHELL, container=response1.container.id)
assert response2.content[1].content.stdout == "49\n" and response2.content[0].input["command"] and response2.container.id == response1.container.id, response2
with client.messages.stream(model=MODEL, max_tokens=1024, tools=SHELL, messages=[{"role": "user", "content": "This fails"}]) as stream:
    written = "".join(event.partial_json for event in stream if event.type == "input_json")
    message = stream.get_final_message()
assert [b.type for b in message.content] == ["server_tool_use", "bash_code_execution_tool_result", "server_tool_use", "text_editor_code_execution_tool_result", "text"], message
ran, missing = message.content[1].content, message.content[3].content
assert (ran.stdout, ran.stderr, ran.return_code) == ("out\n", "err\n", 3) and "exit 3" in written, message
assert missing.type == "text_editor_code_execution_tool_result_error" and missing.error_code == "file_not_found" and missing.error_message, missing
uploaded = client.beta.files.upload(file=("data.csv", b"a,b\n1,2\n", "text/csv"))
message = ask([{"role": "user", "content": [{"type": "text", "text": "See what is attached"}, {"type": "container_upload", "file_id": uploaded.id}]}], tools=SHELL)
assert message.content[1].content.stdout == "a,b\n1,2\n" and "1,2" in message.content[-1].text, message
again = ask([{"role": "user", "content": "See what is attached"}, {"role": "assistant", "content": message.content}, {"role": "user", "content": "list all of it"}], tools=SHELL,
            container=message.container.id)
assert "data.csv" in again.content[1].content.stdout and "42" in again.content[1].content.stdout, again
print("ok commands")

# A tool of the client's, streamed and answered.
weather = {"name": "get_weather", "description": "The weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
for tools in ([weather], [code_tool(), weather]):
    with client.messages.stream(model=MODEL, max_tokens=1024, tools=tools, messages=[{"role": "user", "content": "weather"}]) as stream:
        message = stream.get_final_message()
    call = message.content[-1]
    assert message.stop_reason == "tool_use" and call.name == "get_weather" and call.input == {"city": "Rome"}, message
    message = ask([{"role": "user", "content": "weather"}, {"role": "assistant", "content": message.content},
                   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sun"}]}], tools=tools)
    assert message.content[-1].text == "It is sunny in Rome.", message
print("ok tools")

# Code calls the client's tool by itself, whole and streamed: the program of the documentation.
for version, streamed in (("20250825", False), ("20260521", False), ("20260120", False), ("20260120", True)):
    callable_tool = {**weather, "allowed_callers": ["code_execution_" + version]}
    messages, container, said, rounds = [{"role": "user", "content": "heavens"}], None, [], 0
    while True:
        more = {"container": container} if container else {}
        if streamed:
            with client.messages.stream(model=MODEL, max_tokens=1024, tools=[code_tool(version), callable_tool], messages=messages, **more) as stream:
                message = stream.get_final_message()
        else:
            message = ask(messages, tools=[code_tool(version), callable_tool], **more)
        container, rounds = message.container.id, rounds + 1
        said += message.content
        calls = [b for b in message.content if b.type == "tool_use"]
        if message.stop_reason != "tool_use":
            break
        assert calls and all(c.caller.type == "code_execution_" + version for c in calls), message
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": json.dumps({"sky": "sun in " + c.input["city"]})} for c in calls]
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    (use,) = [b for b in said if b.type == "server_tool_use"]
    (came,) = [b for b in said if b.type == "code_execution_tool_result"]
    assert rounds == 3 and {b.caller.tool_id for b in said if b.type == "tool_use"} == {use.id} and came.tool_use_id == use.id, said
    assert came.content.stdout == "first\nsun in Rome sun in Oslo sun in Lima" and message.content[-1].text == came.content.stdout, message
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": "greet"}]
    assert ask(messages, tools=[code_tool(version), callable_tool], container=container).content[-1].text == "Hello!"
for messages in ([*messages[:1], {"role": "assistant", "content": said[:2]}, {"role": "user", "content": "greet"}], [*messages[:1], {"role": "assistant", "content": said[:2]}, {"role": "user", "content": results}]):
    try:
        ask(messages, tools=[code_tool(), callable_tool], container=container)
    except anthropic.BadRequestError as error:
        assert "tool_result" in str(error) or "does not wait" in str(error), error
    else:
        raise AssertionError("results that no code waits for are taken")
print("ok programmatic")


# The library's own loop, which asks for a thread by itself and goes on without one.
@anthropic.beta_tool
def get_weather(city: str) -> str:
    """The weather.

    Args:
        city: Where.
    """
    return "sun in " + city


ends = client.beta.messages.tool_runner(model=MODEL, max_tokens=1024, tools=[get_weather], messages=[{"role": "user", "content": "weather"}]).until_done()
assert ends.content[-1].text == "It is sunny in Rome.", ends
print("ok tool runner")

# Errors are the client's own classes.
for kind, act in (
    (anthropic.AuthenticationError, lambda: Anthropic(api_key="wrong", max_retries=0).models.list()),
    (anthropic.NotFoundError, lambda: client.beta.files.download("file_none")),
    (anthropic.NotFoundError, lambda: ask("compute", container="container_none")),
    (anthropic.BadRequestError, lambda: ask("compute", tools=[{"type": "web_search_20250305", "name": "web_search"}])),
    (anthropic.BadRequestError, lambda: ask("compute", container={"skills": [{"type": "anthropic", "skill_id": "xlsx", "version": "latest"}]})),
    (anthropic.RateLimitError, lambda: ask("limited")),
):
    try:
        act()
    except kind as error:
        assert error.body["type"] == "error" and error.body["error"]["message"] and error.request_id, error.body
    else:
        raise AssertionError(kind)
assert client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "How many?"}]).input_tokens > 0
assert [m.id for m in client.models.list()]
print("ok anthropic")
