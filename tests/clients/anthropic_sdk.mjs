// Anthropic's JavaScript client against a server: node anthropic_sdk.mjs BASE_URL. Prints OK at the end, throws before.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "dummy", maxRetries: 0 });
const model = "claude-any";
const messages = [{ role: "user", content: "hi" }];
const input_schema = { type: "object", properties: { deep: { type: "boolean" } }, required: ["deep"] };
const tools = [{ name: "look", input_schema }];

// Messages, whole and streamed, and counted.
const answer = await client.messages.create({ model, max_tokens: 8, messages });
assert.equal(answer.stop_reason, "max_tokens");
assert.equal(answer.usage.output_tokens, 8);
const counted = await client.messages.countTokens({ model, messages });
assert.equal(counted.input_tokens, answer.usage.input_tokens);
const stream = client.messages.stream({ model, max_tokens: 8, messages });
let text = "";
stream.on("text", (piece) => { text += piece; });
const said = await stream.finalMessage();
assert.equal(said.usage.output_tokens, 8);
assert.equal(text, said.content.map((block) => block.text ?? "").join(""));

// Tools, and what they returned.
const called = await client.messages.create({ model, max_tokens: 200, messages, tools, tool_choice: { type: "any" } });
const [call] = called.content;
assert.equal(called.stop_reason, "tool_use");
assert.equal(call.name, "look");
assert.equal(typeof call.input.deep, "boolean");
const streamed = await client.messages
  .stream({ model, max_tokens: 200, messages, tools, tool_choice: { type: "tool", name: "look" } })
  .finalMessage();
assert.equal(typeof streamed.content[0].input.deep, "boolean");
const result = { type: "tool_result", tool_use_id: call.id, content: "dark" };
const following = await client.messages.create({
  model, max_tokens: 4, tools,
  messages: [...messages, { role: "assistant", content: called.content }, { role: "user", content: [result] }],
});
assert.ok(following.usage.output_tokens <= 4);

// Structured.
const schema = {
  type: "object", properties: { colour: { enum: ["red", "green"] } }, required: ["colour"], additionalProperties: false,
};
const structured = await client.messages.create({
  model, max_tokens: 100, messages, output_config: { format: { type: "json_schema", schema } },
});
assert.ok(["red", "green"].includes(JSON.parse(structured.content[0].text).colour));

// Errors.
await assert.rejects(
  client.messages.create({ model, max_tokens: 8, messages: [{ role: "user", content: "x".repeat(20000) }] }),
  (error) => error instanceof Anthropic.BadRequestError && /prompt is too long: \d+ tokens > \d+ maximum/.test(error.message),
);
await assert.rejects(
  client.messages.create({ model, max_tokens: 8, messages, tools, tool_choice: { type: "tool", name: "gone" } }),
  Anthropic.BadRequestError,
);
const listed = await client.models.list();
assert.equal(listed.data.length, 1);
console.log("OK");
