"""One example with the OpenAI Agents SDK: an agent with the code interpreter and a function of its own."""

import os

from agents import Agent, CodeInterpreterTool, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)


@function_tool
def get_weather(city: str) -> str:
    """Tells the weather."""
    return "sunny"


agent = Agent(
    name="analyst", model=os.environ["COVE_TEST_MODEL"], instructions="Use Python.",
    tools=[CodeInterpreterTool(tool_config={"type": "code_interpreter", "container": {"type": "auto"}}), get_weather],
)


async def main():
    result = await Runner.run(agent, "compute")
    assert result.final_output == "The answer is 42.", result.final_output
    print("ok run")
    result = await Runner.run(agent, "weather")
    assert result.final_output == "It is sunny in Rome.", result.final_output
    print("ok function")
    streamed = Runner.run_streamed(agent, "compute")
    code = ""
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.code_interpreter_call_code.delta":
            code += event.data.delta
    assert code == "print(6*7)" and streamed.final_output == "The answer is 42.", (code, streamed.final_output)
    print("ok streamed")
