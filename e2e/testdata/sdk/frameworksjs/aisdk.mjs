// One example with Vercel's AI SDK: text, a stream, and the code interpreter as a tool of the provider.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const model = openai.responses(process.env.COVE_TEST_MODEL);
const tools = { code_interpreter: openai.tools.codeInterpreter({}) };

const whole = await generateText({ model, prompt: "compute", tools });
assert.equal(whole.text, "The answer is 42.");
assert.equal(whole.toolCalls[0].toolName, "code_interpreter");
assert.equal(whole.toolCalls[0].input.code, "print(6*7)");
assert.equal(whole.toolResults[0].output.outputs[0].logs, "42\n");
console.log("ok generateText");

const stream = streamText({ model, prompt: "plot", tools, onError: ({ error }) => { throw error; } });
let text = "";
const kinds = new Set();
for await (const part of stream.fullStream) {
  kinds.add(part.type);
  if (part.type === "error") throw part.error;
  if (part.type === "text-delta") text += part.text;
}
assert.equal(text, "Here is [the plot](sandbox:/mnt/data/plot.txt).");
assert.ok(kinds.has("tool-input-delta") && kinds.has("tool-result") && kinds.has("source"), [...kinds].join(" "));
console.log("ok streamText");
