// What Google's npm package does against this server, unmodified. Environment: GOOGLE_GEMINI_BASE_URL, GEMINI_API_KEY, COVE_TEST_MODEL.
import assert from "node:assert/strict";
import { ApiError, createPartFromUri, createUserContent, FunctionCallingConfigMode, GoogleGenAI, Type } from "@google/genai";

const ai = new GoogleGenAI({});
const model = process.env.COVE_TEST_MODEL;
const config = { tools: [{ codeExecution: {} }] };
const kinds = (parts) => parts.map((p) => Object.keys(p)[0]);

const checks = {
  async documented() {
    const response = await ai.models.generateContent({ model, contents: ["compute, please"], config });
    const parts = response.candidates[0].content.parts;
    assert.deepEqual(kinds(parts), ["executableCode", "codeExecutionResult", "text"]);
    assert.equal(response.executableCode, "print(6*7)");
    assert.equal(response.codeExecutionResult, "42\n");
    assert.equal(parts[1].codeExecutionResult.outcome, "OUTCOME_OK");
    assert.equal(parts[2].text, "The answer is 42.");
    assert.equal(response.usageMetadata.totalTokenCount, 30);
  },

  async chat() {
    const chat = ai.chats.create({ model, config });
    await chat.sendMessage({ message: "set the var" });
    let text = "";
    const seen = [];
    for await (const chunk of await chat.sendMessageStream({ message: "recall it" })) {
      const parts = chunk.candidates[0].content.parts;
      seen.push(...kinds(parts));
      text += parts.map((p) => p.text ?? "").join("");
    }
    assert.equal(text, "It is 42.");
    assert.deepEqual(seen.slice(0, 2), ["executableCode", "codeExecutionResult"]);
    assert.equal(chat.getHistory(true)[0].role, "user");
    assert.ok(chat.getHistory(true).length > 4);
  },

  async image() {
    const response = await ai.models.generateContent({ model, contents: "plot, please", config });
    const [picture] = response.candidates[0].content.parts.filter((p) => p.inlineData);
    assert.equal(picture.inlineData.mimeType, "image/png");
  },

  async uploads() {
    const table = await ai.files.upload({ file: new Blob(["a,b\n1,2\n"], { type: "text/csv" }), config: { displayName: "My table" } });
    assert.equal(table.displayName, "My table");
    assert.equal(table.sizeBytes, "8");
    const contents = createUserContent([createPartFromUri(table.uri, table.mimeType), "read what is attached"]);
    assert.equal((await ai.models.generateContent({ model, contents, config })).codeExecutionResult, "a,b\n1,2\n");
    const names = [];
    for await (const file of await ai.files.list({ config: { pageSize: 1 } })) names.push(file.name);
    assert.ok(names.includes(table.name), names.join());
    assert.equal((await ai.files.get({ name: table.name })).uri, table.uri);
    await ai.files.delete({ name: table.name });
    await assert.rejects(ai.files.get({ name: table.name }), (e) => e instanceof ApiError && e.status === 404);
  },

  async functions() {
    const declaration = { name: "get_weather", description: "Says what the weather is", parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING, nullable: true } }, required: ["city"] } };
    const tools = { tools: [{ functionDeclarations: [declaration] }], toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } } };
    const contents = [{ role: "user", parts: [{ text: "the weather?" }] }];
    const asked = await ai.models.generateContent({ model, contents, config: tools });
    const [call] = asked.functionCalls;
    assert.equal(call.name, "get_weather");
    assert.deepEqual(call.args, { city: "Rome" });
    contents.push(asked.candidates[0].content, { role: "user", parts: [{ functionResponse: { name: call.name, response: { result: "sunny" } } }] });
    const answer = await ai.models.generateContent({ model, contents, config: { tools: tools.tools } });
    assert.equal(answer.text, "It is sunny in Rome.");
  },

  async refused() {
    await assert.rejects(ai.models.generateContent({ model, contents: "limited" }), (e) => e instanceof ApiError && e.status === 429);
    await assert.rejects(ai.models.generateContent({ model, contents: "x", config: { tools: [{ urlContext: {} }] } }), /urlContext/);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log("ok " + name);
}
console.log("ok all");
