// Drives cove with the code of LibreChat's own client, @librechat/agents.
// LIBRECHAT_CODE_BASEURL and LIBRECHAT_CODE_API_KEY are set as an operator of LibreChat sets them.
import assert from 'node:assert/strict';

const tools = new URL('./node_modules/@librechat/agents/dist/esm/tools/', import.meta.url);
const { createCodeExecutionTool } = await import(new URL('CodeExecutor.mjs', tools));
const { createBashExecutionTool } = await import(new URL('BashExecutor.mjs', tools));
const { createProgrammaticToolCallingTool, fetchSessionFiles } = await import(new URL('ProgrammaticToolCalling.mjs', tools));

const authHeaders = { 'X-API-Key': process.env.LIBRECHAT_CODE_API_KEY };

// call calls a tool as LibreChat's graph does, and returns what the model reads and what LibreChat keeps.
async function call(tool, args, context = {}) {
  const message = await tool.invoke({ type: 'tool_call', id: 'call_1', name: tool.name, args, ...context });
  return [message.content, message.artifact];
}

const code = createCodeExecutionTool({ authHeaders, runtimeSessionHint: 'a conversation', statefulSessions: true });
let [said, kept] = await call(code, { lang: 'py', code: 'x = 6\nprint(x * 7)\nopen("/mnt/data/out.csv", "w").write("a\\n1\\n")' });
assert.match(said, /stdout:\n42/);
assert.equal(kept.files.length, 1);
assert.equal(kept.files[0].name, 'out.csv');
[said] = await call(code, { lang: 'py', code: 'print(x)' });
assert.match(said, /stdout:\n6/, 'variables of the conversation are kept');
[said] = await call(code, { lang: 'py', code: '1 / 0' });
assert.match(said, /ZeroDivisionError/);
console.log('ok code');

const files = await fetchSessionFiles(process.env.LIBRECHAT_CODE_BASEURL, kept.session_id, { kind: 'user', id: 'somebody' }, authHeaders);
assert.deepEqual(files.map((file) => file.name), ['out.csv']);
const other = createCodeExecutionTool({ authHeaders, files });
[said] = await call(other, { lang: 'py', code: 'print(open("/mnt/data/out.csv").read())' });
assert.match(said, /a\n1/, 'a file of another session');
console.log('ok files');

const bash = createBashExecutionTool({ authHeaders });
[said] = await call(bash, { command: 'echo $((6 * 7))' });
assert.match(said, /42/);
console.log('ok bash');

// Tools of LibreChat's, which code calls.
const asked = [];
const toolMap = new Map([
  ['query-database', { name: 'query-database', invoke: async ({ sql }) => (asked.push(sql), [{ region: 'north', sales: 3 }, { region: 'south', sales: 4 }]) }],
  ['get_weather', { name: 'get_weather', invoke: async ({ city }) => (asked.push(city), `sunny in ${city}`) }],
  ['broken', { name: 'broken', invoke: async () => { throw new Error('the database is away'); } }],
]);
const toolDefs = [
  { name: 'query-database', description: 'Runs SQL.', parameters: { type: 'object', properties: { sql: { type: 'string' } }, required: ['sql'] } },
  { name: 'get_weather', description: 'The weather.', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
  { name: 'broken', description: 'Fails.', parameters: { type: 'object', properties: {} } },
];
const programmatic = createProgrammaticToolCallingTool({ authHeaders });
const context = { toolMap, toolDefs };
[said, kept] = await call(programmatic, { code: `
import asyncio
rows = await query_database(sql="select 1")
weather = await asyncio.gather(*(get_weather(city=c) for c in ["Berlin", "Bern", "Bonn"]))
print(sum(row["sales"] for row in rows), weather)
for n in range(3):
    rows = await query_database(sql=f"select {n}")
try:
    await broken()
except Exception as error:
    print("caught", error)
open("/mnt/data/sum.txt", "w").write("7")
` }, context);
assert.match(said, /7 \['sunny in Berlin', 'sunny in Bern', 'sunny in Bonn'\]/);
assert.match(said, /caught .*the database is away/);
assert.deepEqual(asked, ['select 1', 'Berlin', 'Bern', 'Bonn', 'select 0', 'select 1', 'select 2'], 'code does not run again from its top');
assert.equal(kept.files[0].name, 'sum.txt');
await assert.rejects(call(programmatic, { code: 'import time\nawait get_weather(city="Berlin")\ntime.sleep(600)', timeout: 3000 }, context), /ran longer than 3s/);
console.log('ok programmatic');
