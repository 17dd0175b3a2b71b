"""What the official Python package does against this server, unmodified."""

import io
import json
import os

import openai
from openai import OpenAI

client = OpenAI(max_retries=0)
model = os.environ["COVE_TEST_MODEL"]
fake = bool(os.environ.get("COVE_TEST_FAKE"))
tools = [{"type": "code_interpreter", "container": {"type": "auto"}}]
include = ["code_interpreter_call.outputs"]
weather = {
    "type": "function", "name": "get_weather", "description": "Tells the weather", "strict": False,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def call(response, kind="code_interpreter_call"):
    return next(item for item in response.output if item.type == kind)


def raises(error, action, code=None):
    try:
        action()
    except error as e:
        assert code is None or e.code == code, (e.code, code)
        return e
    raise AssertionError(f"no {error.__name__}")


def create():
    response = client.responses.create(model=model, input="compute", tools=tools, include=include, metadata={"a": "b"})
    assert response.status == "completed" and response.output_text == "The answer is 42.", response
    assert call(response).outputs[0].logs == "42\n" and response.metadata == {"a": "b"}
    assert client.responses.retrieve(response.id).output_text == response.output_text
    following = client.responses.create(model=model, input="compute", tools=tools, previous_response_id=response.id)
    assert call(following).container_id == call(response).container_id
    assert [item.role for item in client.responses.input_items.list(following.id, limit=1)] == ["user"]
    client.responses.delete(response.id)
    raises(openai.NotFoundError, lambda: client.responses.retrieve(response.id))


def stream():
    code = ""
    with client.responses.stream(model=model, input="compute", tools=tools, include=include) as events:
        for number, event in enumerate(events):
            if event.type == "response.code_interpreter_call_code.delta":
                code += event.delta
        final = events.get_final_response()
    assert code == "print(6*7)" and final.output_text == "The answer is 42.", (code, final)
    numbers = [e.sequence_number for e in client.responses.create(model=model, input="compute", tools=tools, stream=True)]
    assert numbers == list(range(len(numbers))) and len(numbers) > 10


def resume():
    started = client.responses.create(model=model, input="compute", tools=tools, background=True, stream=True)
    events = list(started)
    rest = list(client.responses.retrieve(events[0].response.id, stream=True, starting_after=5))
    assert [e.sequence_number for e in rest] == [e.sequence_number for e in events[6:]]


def conversations():
    talk = client.conversations.create(metadata={f"题{n}": "字" * 512 for n in range(16)}, items=[{"type": "message", "role": "user", "content": "My name is Ada."}])
    raises(openai.RateLimitError, lambda: client.responses.create(model=model, input="limited", conversation=talk.id))
    assert [item.content[0].text for item in client.conversations.items.list(talk.id)] == ["My name is Ada."]
    client.responses.create(model=model, input="compute", tools=tools, conversation=talk.id)
    kinds = [item.type for item in client.conversations.items.list(talk.id, order="asc")]
    assert kinds[:2] == ["message", "message"] and "code_interpreter_call" in kinds, kinds
    assert client.conversations.update(talk.id, metadata={"topic": "y"}).metadata == {"topic": "y"}
    assert client.conversations.delete(talk.id).deleted
    raises(openai.NotFoundError, lambda: client.conversations.retrieve(talk.id))


def files():
    stored = client.files.create(file=("data.csv", b"a,b\n1,2\n"), purpose="user_data", expires_after={"anchor": "created_at", "seconds": 3600})
    assert stored.bytes == 8 and client.files.content(stored.id).read() == b"a,b\n1,2\n"
    assert stored.id in [f.id for f in client.files.list(purpose="user_data")]
    box = client.containers.create(name="box", file_ids=[stored.id], memory_limit="1g")
    up = client.containers.files.create(box.id, file=("größe.txt", io.BytesIO(b"hello")))
    again = client.containers.files.create(box.id, file_id=stored.id)
    assert up.path == "/mnt/data/größe.txt" and again.path == "/mnt/data/data.csv" and up.source == "user"
    assert sorted(f.path for f in client.containers.files.list(box.id)) == ["/mnt/data/data.csv", "/mnt/data/größe.txt"]
    assert client.containers.files.content.retrieve(up.id, container_id=box.id).read() == b"hello"
    if not fake:
        response = client.responses.create(model=model, input="read the file", include=include, tools=[{"type": "code_interpreter", "container": box.id}])
        assert "1,2" in call(response).outputs[0].logs, response.output
    assert box.id in [c.id for c in client.containers.list()]
    client.containers.files.delete(up.id, container_id=box.id)
    raises(openai.NotFoundError, lambda: client.containers.files.retrieve(up.id, container_id=box.id))
    client.containers.delete(box.id)
    raises(openai.NotFoundError, lambda: client.containers.retrieve(box.id))
    assert client.files.delete(stored.id).deleted
    raises(openai.NotFoundError, lambda: client.files.retrieve(stored.id))


def inputs():
    pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    content = [{"type": "input_text", "text": "compute"}, {"type": "input_image", "image_url": pixel, "detail": "auto"},
               {"type": "input_file", "filename": "data.csv", "file_data": "data:text/csv;base64,YSxiCjEsMgo="}]
    response = client.responses.create(model=model, tools=tools, input=[{"role": "user", "content": content}])
    assert response.output_text == "The answer is 42."


def citations():
    response = client.responses.create(model=model, input="plot", tools=tools, include=include)
    part = response.output[-1].content[0]
    cited = part.annotations[0]
    assert cited.type == "container_file_citation" and part.text[cited.start_index:cited.end_index] == "sandbox:/mnt/data/plot.txt"
    assert any(o.type == "image" and o.url.startswith("data:image/png;base64,") for o in call(response).outputs)
    if not fake:
        assert client.containers.files.content.retrieve(cited.file_id, container_id=cited.container_id).read() == b"plotted"


def functions():
    first = client.responses.create(model=model, input="weather", tools=[*tools, weather])
    wanted = call(first, "function_call")
    assert json.loads(wanted.arguments) == {"city": "Rome"}
    answer = {"type": "function_call_output", "call_id": wanted.call_id, "output": "sunny"}
    second = client.responses.create(model=model, tools=[*tools, weather], previous_response_id=first.id, input=[answer])
    assert second.output_text == "It is sunny in Rome."
    replayed = client.responses.create(model=model, tools=[*tools, weather], store=False, input=[{"role": "user", "content": "weather"}, *first.output, answer])
    assert replayed.output_text == "It is sunny in Rome."


def programs():
    """Code calls the client's function; the client keeps the conversation, or the server does, or it is a chat."""
    offered = [{"type": "programmatic_tool_calling"}, {**weather, "allowed_callers": ["programmatic"]}]
    for stored in (True, False):
        asked, previous, rounds, seen = [{"role": "user", "content": "skies"}], openai.omit, 0, []
        while True:
            with client.responses.stream(model=model, input=asked, tools=offered, store=stored, previous_response_id=previous) as events:
                for _ in events:
                    pass
                response = events.get_final_response()
            rounds, seen = rounds + 1, seen + response.output
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            answers = [{"type": "function_call_output", "call_id": c.call_id, "output": json.dumps({"sky": "sunny in " + json.loads(c.arguments)["city"]})} for c in calls]
            if stored:
                previous, asked = response.id, answers
            else:
                asked = [*asked, *response.output, *answers]
        (program,) = [item for item in seen if item.type == "program"]
        (output,) = [item for item in seen if item.type == "program_output"]
        callers = [item.caller.caller_id for item in seen if item.type == "function_call"]
        assert rounds == 3 and callers == [program.call_id] * 3 and output.call_id == program.call_id and program.fingerprint, seen
        assert output.result == "first\nsunny in Rome sunny in Oslo sunny in Lima" and output.status == "completed", output
        assert response.output_text == output.result, response
    raises(openai.BadRequestError, lambda: client.responses.create(model=model, input="skies", tools=offered[1:]), "invalid_value")
    asked = [{"role": "user", "content": "skies"}]
    chat_tools = [offered[0], {"type": "function", "function": {key: value for key, value in offered[1].items() if key not in ("type", "strict")}}]
    for _ in range(3):
        said = client.chat.completions.create(model=model, messages=asked, tools=chat_tools).choices[0]
        if said.finish_reason != "tool_calls":
            break
        asked += [said.message, *({"role": "tool", "tool_call_id": c.id, "content": json.dumps({"sky": json.loads(c.function.arguments)["city"]})} for c in said.message.tool_calls)]
    assert said.message.content == "first\nRome Oslo Lima", said


def cancel():
    started = client.responses.create(model=model, input="slow", tools=tools, background=True)
    assert started.status in ("queued", "in_progress")
    assert client.responses.cancel(started.id).status == "cancelled"
    assert client.responses.retrieve(started.id).status == "cancelled"


def errors():
    other = OpenAI(api_key="sk-nobody", max_retries=0)
    raises(openai.AuthenticationError, other.models.list, "invalid_api_key")
    e = raises(openai.BadRequestError, lambda: client.responses.create(model=model, input="x", extra_body={"max_tokens": 1}), "unknown_parameter")
    assert e.param == "max_tokens"
    raises(openai.RateLimitError, lambda: client.responses.create(model=model, input="limited"), "rate_limit_exceeded")
    raises(openai.NotFoundError, lambda: client.models.retrieve("none"), "model_not_found")
    assert client.responses.input_tokens.count(model=model, input="x").input_tokens > 0


def chat():
    ask = [{"role": "user", "content": "compute"}]
    answer = client.chat.completions.create(model=model, messages=ask, tools=[{"type": "code_interpreter"}])
    assert answer.choices[0].message.content == "The answer is 42."
    chunks = client.chat.completions.create(model=model, messages=ask, tools=[{"type": "code_interpreter"}], stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == "The answer is 42."
    if not fake:
        answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "greet"}])
        assert answer.choices[0].message.content == "Hello!"


for check in (create, stream, resume, conversations, files, inputs, citations, functions, cancel, errors, *(() if fake else (programs,)), chat):
    check()
    print("ok", check.__name__, flush=True)
