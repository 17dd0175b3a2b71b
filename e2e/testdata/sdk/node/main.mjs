// What the official npm package does against this server, unmodified. Environment: OPENAI_BASE_URL, OPENAI_API_KEY, COVE_TEST_MODEL.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import OpenAI, { toFile } from "openai";

const client = new OpenAI({ maxRetries: 0 });
const model = process.env.COVE_TEST_MODEL;
const tools = [{ type: "code_interpreter", container: { type: "auto" } }];
const include = ["code_interpreter_call.outputs"];
const call = (response) => response.output.find((item) => item.type === "code_interpreter_call");

const checks = {
  async create() {
    const response = await client.responses.create({ model, input: "compute", tools, include });
    assert.equal(response.status, "completed");
    assert.equal(response.output_text, "The answer is 42.");
    assert.equal(call(response).outputs[0].logs, "42\n");
    assert.match(call(response).container_id, /^cntr_/);
    const again = await client.responses.retrieve(response.id);
    assert.equal(again.output_text, response.output_text);
    const next = await client.responses.create({ model, input: "compute", tools, previous_response_id: response.id });
    assert.equal(call(next).container_id, call(response).container_id);
    const items = await client.responses.inputItems.list(next.id);
    assert.equal(items.data.length, 1);
    await client.responses.delete(response.id);
    await assert.rejects(client.responses.retrieve(response.id), OpenAI.NotFoundError);
  },

  async stream() {
    const types = [];
    let code = "";
    const stream = client.responses.stream({ model, input: "compute", tools, include });
    stream.on("event", (event) => types.push(event.type));
    stream.on("response.code_interpreter_call_code.delta", (event) => (code += event.delta));
    const response = await stream.finalResponse();
    assert.equal(response.output_text, "The answer is 42.");
    assert.equal(code, "print(6*7)");
    assert.equal(types[0], "response.created");
    assert.equal(types.at(-1), "response.completed");
    const raw = await client.responses.create({ model, input: "compute", tools, stream: true });
    let number = 0;
    for await (const event of raw) assert.equal(event.sequence_number, number++);
    assert.ok(number > 10);
  },

  async files() {
    const stored = await client.files.create({ file: await toFile(Buffer.from("a,b\n1,2\n"), "data.csv"), purpose: "user_data" });
    assert.equal(stored.bytes, 8);
    assert.equal(await (await client.files.content(stored.id)).text(), "a,b\n1,2\n");
    const box = await client.containers.create({ name: "box", file_ids: [stored.id], expires_after: { anchor: "last_active_at", minutes: 20 } });
    assert.equal(box.status, "running");
    const local = path.join(os.tmpdir(), `cove-${process.pid}.txt`);
    fs.writeFileSync(local, "hello");
    const up = await client.containers.files.create(box.id, { file: fs.createReadStream(local) });
    fs.unlinkSync(local);
    assert.equal(up.path, "/mnt/data/" + path.basename(local));
    const names = [];
    for await (const file of client.containers.files.list(box.id)) names.push(path.basename(file.path));
    assert.deepEqual(names.sort(), [path.basename(local), "data.csv"].sort());
    assert.equal(await (await client.containers.files.content.retrieve(up.id, { container_id: box.id })).text(), "hello");
    await client.containers.files.delete(up.id, { container_id: box.id });
    await client.containers.delete(box.id);
    await assert.rejects(client.containers.retrieve(box.id), OpenAI.NotFoundError);
    await client.files.delete(stored.id);
    await assert.rejects(client.files.retrieve(stored.id), OpenAI.NotFoundError);
  },

  async citations() {
    const response = await client.responses.stream({ model, input: "plot", tools, include }).finalResponse();
    const part = response.output.at(-1).content[0];
    const [cited] = part.annotations;
    assert.equal(cited.type, "container_file_citation");
    assert.equal([...part.text].slice(cited.start_index, cited.end_index).join(""), "sandbox:/mnt/data/plot.txt");
    assert.ok(call(response).outputs.some((o) => o.type === "image" && o.url.startsWith("data:image/png;base64,")));
    if (process.env.COVE_TEST_FAKE) return;
    const content = await client.containers.files.content.retrieve(cited.file_id, { container_id: cited.container_id });
    assert.equal(await content.text(), "plotted");
  },

  async functions() {
    const weather = { type: "function", name: "get_weather", description: "Tells the weather", strict: false,
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };
    const first = await client.responses.stream({ model, input: "weather", tools: [...tools, weather] }).finalResponse();
    const wanted = first.output.find((item) => item.type === "function_call");
    assert.deepEqual(JSON.parse(wanted.arguments), { city: "Rome" });
    const second = await client.responses.create({ model, tools: [...tools, weather], previous_response_id: first.id,
      input: [{ type: "function_call_output", call_id: wanted.call_id, output: "sunny" }] });
    assert.equal(second.output_text, "It is sunny in Rome.");
    const replayed = await client.responses.create({ model, tools: [...tools, weather], store: false,
      input: [{ role: "user", content: "weather" }, ...first.output, { type: "function_call_output", call_id: wanted.call_id, output: "sunny" }] });
    assert.equal(replayed.output_text, "It is sunny in Rome.");
  },

  async programs() {
    if (process.env.COVE_TEST_FAKE) return;
    const offered = [{ type: "programmatic_tool_calling" }, { type: "function", name: "get_weather", strict: false, allowed_callers: ["programmatic"],
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }];
    let response = await client.responses.create({ model, input: "skies", tools: offered }), rounds = 1;
    const seen = [...response.output];
    for (let calls; (calls = response.output.filter((item) => item.type === "function_call")).length > 0; rounds++) {
      const input = calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: JSON.stringify({ sky: JSON.parse(c.arguments).city }) }));
      response = await client.responses.create({ model, input, tools: offered, previous_response_id: response.id });
      seen.push(...response.output);
    }
    const output = seen.find((item) => item.type === "program_output");
    assert.equal(rounds, 3);
    assert.equal(output.call_id, seen.find((item) => item.type === "program").call_id);
    assert.equal(response.output_text, "first\nRome Oslo Lima");
  },

  async images() {
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const response = await client.responses.create({ model, tools,
      input: [{ role: "user", content: [{ type: "input_text", text: "compute" }, { type: "input_image", image_url: "data:image/png;base64," + pixel, detail: "auto" }] }] });
    assert.equal(response.output_text, "The answer is 42.");
  },

  async cancel() {
    const started = await client.responses.create({ model, input: "slow", tools, background: true });
    assert.ok(["queued", "in_progress"].includes(started.status));
    assert.equal((await client.responses.cancel(started.id)).status, "cancelled");
    assert.equal((await client.responses.retrieve(started.id)).status, "cancelled");
  },

  async errors() {
    const other = new OpenAI({ apiKey: "sk-nobody", maxRetries: 0 });
    await assert.rejects(other.models.list(), (e) => e instanceof OpenAI.AuthenticationError && e.code === "invalid_api_key");
    await assert.rejects(client.responses.create({ model, input: "x", max_tokens: 1 }), (e) => e instanceof OpenAI.BadRequestError && e.code === "unknown_parameter" && e.param === "max_tokens");
    await assert.rejects(client.responses.create({ model, input: "limited" }), (e) => e instanceof OpenAI.RateLimitError && e.code === "rate_limit_exceeded");
    await assert.rejects(client.models.retrieve("none"), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
  },

  async chat() {
    const answer = await client.chat.completions.create({ model, messages: [{ role: "user", content: "compute" }], tools: [{ type: "code_interpreter" }] });
    assert.equal(answer.choices[0].message.content, "The answer is 42.");
    const stream = client.chat.completions.stream({ model, messages: [{ role: "user", content: "compute" }], tools: [{ type: "code_interpreter" }], stream_options: { include_usage: true } });
    assert.equal(await stream.finalContent(), "The answer is 42.");
    if (process.env.COVE_TEST_FAKE) return;
    const passed = await client.chat.completions.create({ model, messages: [{ role: "user", content: "greet" }] });
    assert.equal(passed.choices[0].message.content, "Hello!");
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log("ok", name);
}
