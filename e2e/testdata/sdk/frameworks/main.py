"""Three turns with each framework, which sends the messages of the turns before itself: what the first turn's code set is there in the others."""

import asyncio
import os

import agents as agents_sdk
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.native_tools import CodeExecutionTool

import agents_example

MODEL = os.environ["COVE_TEST_MODEL"]
CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
QUESTIONS = ["set the variable", "recall the variable", "recall the variable once more"]
ANSWERS = ["It is set.", "It is 42.", "It is 42."]


async def langchain():
    model = ChatOpenAI(model=MODEL, use_responses_api=True).bind_tools([CODE])
    history = []
    for question, want in zip(QUESTIONS, ANSWERS):
        history.append(HumanMessage(question))
        answer = model.invoke(history)
        history.append(answer)
        assert answer.text == want, (question, answer)


async def openai_agents():
    agent = agents_sdk.Agent(name="analyst", model=MODEL, tools=[agents_sdk.CodeInterpreterTool(tool_config=CODE)])
    history = []
    for question, want in zip(QUESTIONS, ANSWERS):
        result = await agents_sdk.Runner.run(agent, history + [{"role": "user", "content": question}])
        history = result.to_input_list()
        assert result.final_output == want, (question, result.final_output)


async def pydantic_ai():
    # It sends code back when the model has the name of one of OpenAI's that reason, or when it is told to.
    for model, settings in ("gpt-5.5", {}), (MODEL, {"openai_send_reasoning_ids": True}):
        agent = Agent(OpenAIResponsesModel(model), model_settings=settings, capabilities=[NativeTool(CodeExecutionTool())])
        history = []
        for question, want in zip(QUESTIONS, ANSWERS):
            result = await agent.run(question, message_history=history)
            history = result.all_messages()
            assert result.output == want, (model, question, result.output)


async def main():
    await agents_example.main()
    for turns in langchain, openai_agents, pydantic_ai:
        await turns()
        print("ok three turns of", turns.__name__)


asyncio.run(main())
