// Three turns with each framework, which sends the messages of the turns before itself: what the first turn's code set is there in the others.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, codeInterpreterTool, run, setTracingDisabled, user } from "@openai/agents";
import { generateText } from "ai";
import "./aisdk.mjs";

const model = process.env.COVE_TEST_MODEL;
const turns = [["set the variable", "It is set."], ["recall the variable", "It is 42."], ["recall the variable once more", "It is 42."]];

async function aiSDK() {
  const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
  let messages = [];
  for (const [question, want] of turns) {
    messages.push({ role: "user", content: question });
    const result = await generateText({ model: openai.responses(model), messages, tools: { code_interpreter: openai.tools.codeInterpreter({}) } });
    messages.push(...result.response.messages);
    assert.equal(result.text, want, question);
  }
}

async function agents() {
  setTracingDisabled(true);
  const agent = new Agent({ name: "analyst", model, tools: [codeInterpreterTool({ container: { type: "auto" } })] });
  let history = [];
  for (const [question, want] of turns) {
    const result = await run(agent, [...history, user(question)]);
    history = result.history;
    assert.equal(result.finalOutput, want, question);
  }
}

for (const framework of [aiSDK, agents]) {
  await framework();
  console.log("ok three turns of", framework.name);
}
