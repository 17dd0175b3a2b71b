"""A function-calling loop with any service that speaks OpenAI's Chat Completions, in plain HTTP.

OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL say which one.
"""

import json
import os
import urllib.request

TOOL = {
    "type": "function",
    "function": {
        "name": "code_interpreter",
        "description": "Runs Python code in a sandbox and returns what it prints.",
        "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    },
}


def complete(messages):
    """Returns the model's next message."""
    request = urllib.request.Request(
        os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions",
        json.dumps({"model": os.environ.get("OPENAI_MODEL", "gpt-5"), "messages": messages, "tools": [TOOL]}).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]


def answer(question, code_interpreter, most=10):
    """Asks the model until it answers without code. code_interpreter(code) runs what the model writes."""
    messages = [{"role": "user", "content": question}]
    for _ in range(most):
        message = complete(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": code_interpreter(arguments["code"])})
    raise RuntimeError(f"the model had no answer after {most} turns")
