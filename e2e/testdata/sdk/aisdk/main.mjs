// Vercel's AI SDK of the two newest major versions, with the providers of three vendors: they check each answer against a schema, so that a null where the vendor has nothing fails the whole answer.
import assert from "node:assert/strict";
import * as ai6 from "ai6";
import * as ai7 from "ai7";
import * as anthropic6 from "anthropic6";
import * as anthropic7 from "anthropic7";
import * as google6 from "google6";
import * as google7 from "google7";
import * as openai6 from "openai6";
import * as openai7 from "openai7";
import { z } from "zod";

const base = process.env.OPENAI_BASE_URL.replace(/\/v1$/, ""), apiKey = process.env.OPENAI_API_KEY, name = process.env.COVE_TEST_MODEL;
const google = (g) => (g.createGoogle ?? g.createGoogleGenerativeAI)({ baseURL: base + "/gemini/v1beta", apiKey });

for (const [version, ai, a, g, o] of [[6, ai6, anthropic6, google6, openai6], [7, ai7, anthropic7, google7, openai7]]) {
  const anthropic = a.createAnthropic({ baseURL: base + "/anthropic/v1", apiKey }), openai = o.createOpenAI({ baseURL: base + "/v1", apiKey });
  const models = { anthropic: anthropic(name), google: google(g)(name), responses: openai.responses(name), chat: openai.chat(name) };
  for (const [vendor, model] of Object.entries(models)) {
    const say = `${vendor} of version ${version}`;
    const whole = await ai.generateText({ model, prompt: "greet", maxRetries: 0 });
    assert.equal(whole.text, "Hello!", say);
    assert.ok(whole.usage.outputTokens > 0, say);
    const stream = ai.streamText({ model, prompt: "greet", maxRetries: 0, onError: ({ error }) => { throw error; } });
    let text = "";
    for await (const part of stream.textStream) text += part;
    assert.equal(text, "Hello!", say);
    const weather = ai.tool({ description: "Weather", inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => "sun in " + city });
    const used = await ai.generateText({ model, prompt: "weather", tools: { get_weather: weather }, stopWhen: (ai.stepCountIs ?? ai.isStepCount)(3), maxRetries: 0 });
    assert.equal(used.text, "It is sunny in Rome.", say);
    assert.equal(used.steps[0].toolResults[0].output, "sun in Rome", say);
  }
  const code = await ai.generateText({ model: models.anthropic, prompt: "compute", tools: { code_execution: anthropic.tools.codeExecution_20260120() }, maxRetries: 0 });
  assert.equal(code.text, "The answer is 42.");
  console.log("ok version", version);
}
