// OpenAI's JavaScript client against a server: node openai_sdk.mjs BASE_URL. Prints OK at the end, throws before.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "dummy", maxRetries: 0 });
const model = "any-model";
const messages = [{ role: "user", content: "hi" }];
const Paint = z.object({ colour: z.enum(["red", "green"]), is_dry: z.boolean() });
const parameters = { type: "object", properties: { deep: { type: "boolean" } }, required: ["deep"] };
const tools = [{ type: "function", function: { name: "look", parameters } }];
const quick = { max_tokens: 200, reasoning_effort: "none" };

// Chat, whole and streamed.
const answer = await client.chat.completions.create({ model, messages, max_tokens: 8 });
assert.equal(answer.object, "chat.completion");
assert.equal(answer.usage.completion_tokens, 8);
const pieces = [];
const stream = await client.chat.completions.create({
  model, messages, max_tokens: 8, stream: true, stream_options: { include_usage: true },
});
for await (const piece of stream) pieces.push(piece);
assert.equal(pieces.at(-2).choices[0].finish_reason, "length");
assert.equal(pieces.at(-1).usage.completion_tokens, 8);

// Structured.
const parsed = await client.chat.completions.parse({
  model, messages, ...quick, response_format: zodResponseFormat(Paint, "paint"),
});
Paint.parse(parsed.choices[0].message.parsed);

// Tools.
const called = await client.chat.completions.create({ model, messages, tools, tool_choice: "required", ...quick });
const [call] = called.choices[0].message.tool_calls;
assert.equal(call.function.name, "look");
assert.equal(typeof JSON.parse(call.function.arguments).deep, "boolean");
const runner = client.chat.completions.stream({ model, messages, tools, tool_choice: "required", ...quick });
const final = await runner.finalChatCompletion();
assert.equal(final.choices[0].message.tool_calls[0].function.name, "look");
const following = await client.chat.completions.create({
  model, max_tokens: 4,
  messages: [...messages, called.choices[0].message, { role: "tool", tool_call_id: call.id, content: "dark" }],
});
assert.ok(["stop", "length"].includes(following.choices[0].finish_reason));

// Responses.
const response = await client.responses.create({ model, input: "hi", max_output_tokens: 8 });
assert.equal(response.status, "incomplete");
const kept = await client.responses.retrieve(response.id);
assert.equal(kept.id, response.id);
const next = await client.responses.create({
  model, input: "And?", previous_response_id: response.id, max_output_tokens: 4,
});
assert.equal(next.previous_response_id, response.id);
const kinds = [];
const events = await client.responses.create({ model, input: "hi", stream: true, max_output_tokens: 8 });
for await (const event of events) kinds.push(event.type);
assert.equal(kinds[0], "response.created");
assert.equal(kinds.at(-1), "response.incomplete");
const structured = await client.responses.parse({
  model, input: "hi", reasoning: { effort: "none" }, text: { format: zodTextFormat(Paint, "paint") },
});
Paint.parse(structured.output_parsed);
const forced = await client.responses.create({
  model, input: "hi", reasoning: { effort: "none" }, tool_choice: { type: "function", name: "look" },
  tools: [{ type: "function", name: "look", parameters, strict: false }],
});
assert.equal(forced.output[0].type, "function_call");
assert.equal(typeof JSON.parse(forced.output[0].arguments).deep, "boolean");

// Errors.
await assert.rejects(
  client.chat.completions.create({ model, messages: [{ role: "user", content: "x".repeat(20000) }] }),
  (error) => error instanceof OpenAI.BadRequestError && error.code === "context_length_exceeded",
);
await assert.rejects(
  client.chat.completions.create({
    model, messages,
    response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "array", uniqueItems: true } } },
  }),
  (error) => error.status === 400 && error.message.includes('"/uniqueItems"'),
);
await assert.rejects(client.responses.retrieve("resp_gone"), OpenAI.NotFoundError);
const listed = await client.models.list();
assert.equal(listed.data.length, 1);
console.log("OK");
