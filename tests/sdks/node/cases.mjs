// What OpenAI's Node SDK gets through the gateway, asserted by the SDK's own objects.
//
// Runs the cases named as arguments. Prints a JSON line for each answer or error that a case saw:
// the case, the request id, and the tokens that the SDK showed. Whoever runs this compares them
// with the ledger. Every request carries `x-sdk-case`, so that the provider's log tells the cases
// apart.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import process from "node:process";

import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "openai";

const baseURL = `${process.env.TURNPIKE_URL}/v1`;
const key = process.env.TURNPIKE_KEY;
// May use the model `pair` and no other.
const narrowKey = process.env.TURNPIKE_NARROW_KEY;

const messages = [{ role: "user", content: "Hello" }];
const hello = { model: "small", messages };
const withUsage = { stream_options: { include_usage: true } };

/** The header that tells the test provider what to answer. */
const script = (steps) => ({ "x-provider-script": JSON.stringify(steps) });

/** A request id of our own, for streams, whose helpers show no headers. */
function named() {
  const requestId = `sdk-${randomUUID()}`;
  return [requestId, { "x-request-id": requestId }];
}

const cases = {
  // --- answers ---

  async plain(client, saw) {
    const completion = await client.chat.completions.create(hello);
    const [choice] = completion.choices;
    assert.equal(completion.object, "chat.completion");
    assert.equal(choice.message.role, "assistant");
    assert.ok(choice.message.content);
    assert.equal(choice.finish_reason, "stop");
    saw(completion._request_id, completion.usage);
  },

  async streamed(client, saw) {
    const completion = await accumulate(client, saw, {});
    assert.equal(completion.usage, undefined, "nobody asked for it");
  },

  async streamed_with_usage(client, saw) {
    const completion = await accumulate(client, saw, withUsage);
    assert.ok(completion.usage.total_tokens > 0);
  },

  /** Each chunk as it comes, as programs read them that know no accumulator. */
  async chunks(client, saw) {
    for (const options of [{}, withUsage]) {
      const request = { ...hello, stream: true, ...options };
      const { data, request_id } = await client.chat.completions.create(request).withResponse();
      const got = await collect(data);
      const told = got.filter((chunk) => chunk.usage).map((chunk) => chunk.usage);
      const withoutChoices = got.filter((chunk) => chunk.choices.length === 0);
      assert.equal(told.length, Object.keys(options).length);
      assert.equal(withoutChoices.length, told.length);
      assert.equal(new Set(got.map((chunk) => chunk.id)).size, 1);
      saw(request_id, told[0]);
    }
  },

  /** Plain and streamed at once, over one client. */
  async concurrent(client, saw) {
    const one = async () => {
      const completion = await client.chat.completions.create(hello);
      assert.ok(completion.choices[0].message.content);
      saw(completion._request_id, completion.usage);
    };
    const stream = () => accumulate(client, saw, withUsage);
    const unknown = { ...hello, model: "nothing" };
    const refusal = () => refused(client, saw, NotFoundError, ["model_not_found", "model"], unknown);
    await Promise.all([one(), stream(), one(), stream(), refusal()]);
  },

  // --- tools ---

  /** Two calls in one answer, and the second turn with their results. */
  async tools(client, saw) {
    let completion = await client.chat.completions.create(
      { ...hello, tools },
      { headers: script({ tool_calls: twoCalls }) },
    );
    assertBothCalled(completion);
    saw(completion._request_id, completion.usage);
    const [{ message }] = completion.choices;
    const results = message.tool_calls.map((call) => ({
      role: "tool",
      tool_call_id: call.id,
      content: "sunny",
    }));
    completion = await client.chat.completions.create({
      ...hello,
      messages: [...messages, message, ...results],
      tools,
    });
    assert.equal(completion.choices[0].finish_reason, "stop");
    saw(completion._request_id, completion.usage);
  },

  /** The same calls, their arguments in fragments that the SDK puts together. */
  async tools_streamed(client, saw) {
    const [requestId, headers] = named();
    const stream = client.chat.completions.stream(
      { ...hello, tools, parallel_tool_calls: true, ...withUsage },
      { headers: { ...headers, ...script({ tool_calls: twoCalls }) } },
    );
    const deltas = [0, 0];
    const done = [];
    stream.on("tool_calls.function.arguments.delta", (event) => (deltas[event.index] += 1));
    stream.on("tool_calls.function.arguments.done", (event) => done.push(event.parsed_arguments));
    const completion = await stream.finalChatCompletion();
    assertBothCalled(completion);
    // One more, empty, comes with the name.
    assert.deepEqual(
      deltas,
      twoCalls.map((call) => call.fragments + 1),
    );
    assert.deepEqual(
      done,
      twoCalls.map((call) => call.arguments),
    );
    saw(requestId, completion.usage);
  },

  // --- models ---

  async models(client, saw) {
    const ids = async (client) => {
      const models = await collect(client.models.list());
      return models.map((model) => model.id);
    };
    assert.deepEqual(await ids(client), ["pair", "small"]);
    assert.deepEqual(await ids(client.withOptions({ apiKey: narrowKey })), ["pair"]);
    const model = await client.models.retrieve("small");
    assert.deepEqual([model.id, model.object, model.owned_by], ["small", "model", "demo"]);
    assert.ok(model.created > 0);
    saw(model._request_id);
  },

  // --- errors ---

  async bad_request(client, saw) {
    for (const [model, code] of [
      ["", "invalid_value"],
      [7, "invalid_type"],
    ]) {
      await refused(client, saw, BadRequestError, [code, "model"], { ...hello, model });
    }
  },

  async authentication(client, saw) {
    const typo = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
    for (const apiKey of [typo, "sk-test-unknown"]) {
      const stranger = client.withOptions({ apiKey });
      const error = await refused(stranger, saw, AuthenticationError, ["invalid_api_key", null], hello);
      assert.ok(!JSON.stringify(error.error).includes(apiKey), "an error shows the key");
    }
  },

  async permission(client, saw) {
    const narrow = client.withOptions({ apiKey: narrowKey });
    const expected = ["model_not_allowed", "model", "permission_error"];
    await refused(narrow, saw, PermissionDeniedError, expected, hello);
    await raised(saw, PermissionDeniedError, expected, narrow.models.retrieve("small"));
  },

  async not_found(client, saw) {
    const expected = ["model_not_found", "model"];
    const unknown = { ...hello, model: "no-such-model" };
    const error = await refused(client, saw, NotFoundError, expected, unknown);
    assert.match(error.error.message, /no-such-model/);
    await raised(saw, NotFoundError, expected, client.models.retrieve("no-such-model"));
  },

  /** A provider's own 400 keeps its words. */
  async provider_bad_request(client, saw) {
    const body = {
      message: "This model's maximum context length is 8 tokens.",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    };
    const headers = script({ status: 400, error_body: { error: body } });
    const expected = ["context_length_exceeded", "messages"];
    const error = await refused(client, saw, BadRequestError, expected, hello, headers);
    assert.deepEqual(error.error, body);
  },

  /** The gateway's credential is at fault: not the caller's 401, and nothing to try again. */
  async provider_unauthorized(client, saw) {
    const expected = ["provider_credential_rejected", null, "server_error"];
    await refused(client, saw, InternalServerError, expected, hello, script({ status: 401 }));
  },

  /** A stream that breaks off rejects, and is not taken for a short answer. */
  async broken_stream(client, saw) {
    const [requestId, headers] = named();
    const pieces = [];
    const read = async () => {
      const stream = await client.chat.completions.create(
        { ...hello, stream: true },
        { headers: { ...headers, ...script({ cut_after_chunks: 3 }) } },
      );
      for await (const chunk of stream) pieces.push(chunk.choices[0].delta.content);
    };
    await assert.rejects(read, (error) => error instanceof APIError && error.code === "provider_cut");
    assert.ok(pieces.some(Boolean), "it had begun");
    saw(requestId);
  },

  // --- retries ---

  /** One target, which the gateway tries once: what the SDK tries again is all there is. */
  async retries_of_one_target(client, saw) {
    const expected = [null, null, "server_error"];
    await refused(client, saw, InternalServerError, expected, hello, script({ status: 500 }));
  },

  /** A provider's Retry-After reaches the SDK, which waits as long. */
  async retries_after_a_wait(client, saw) {
    const begun = performance.now();
    const expected = ["rate_limit_exceeded", null, "rate_limit_error"];
    const headers = script({ status: 429, retry_after: "2" });
    const once = client.withOptions({ maxRetries: 1 });
    await refused(once, saw, RateLimitError, expected, hello, headers);
    // A timer may fire a little early.
    assert.ok(performance.now() - begun >= 1990, "it did not wait");
  },

  /** The gateway has tried both targets; the SDK is told not to try both again. */
  async retries_of_a_plan(client, saw) {
    const expected = [null, null, "server_error"];
    const pair = { ...hello, model: "pair" };
    await refused(client, saw, InternalServerError, expected, pair, script({ status: 500 }));
  },

  /** The second target answers, and the SDK notices nothing. */
  async fall_over(client, saw) {
    const { data, response, request_id } = await client.chat.completions
      .create({ ...hello, model: "pair" }, { headers: script([{ status: 503 }, {}]) })
      .withResponse();
    assert.equal(response.headers.get("x-turnpike-attempts"), "2");
    assert.ok(data.choices[0].message.content);
    saw(request_id, data.usage);
  },
};

async function collect(items) {
  const collected = [];
  for await (const item of items) collected.push(item);
  return collected;
}

async function accumulate(client, saw, options) {
  const [requestId, headers] = named();
  const pieces = [];
  const stream = client.chat.completions.stream({ ...hello, ...options }, { headers });
  stream.on("content", (delta) => pieces.push(delta));
  const completion = await stream.finalChatCompletion();
  const [choice] = completion.choices;
  assert.ok(pieces.length > 1);
  assert.equal(choice.message.content, pieces.join(""));
  assert.equal(choice.finish_reason, "stop");
  saw(requestId, completion.usage);
  return completion;
}

const tool = (name, description, properties) => ({
  type: "function",
  function: {
    name,
    description,
    strict: true,
    parameters: {
      type: "object",
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
    },
  },
});
const tools = [
  tool("weather", "Tells the weather of the days to come.", {
    city: { type: "string" },
    days: { type: "integer" },
  }),
  tool("clock", "Tells the time.", { zone: { type: "string" } }),
];
// A quote and a backslash, which JSON within JSON escapes twice.
const twoCalls = [
  { id: "call_w", name: "weather", arguments: { city: 'the "Hague" \\ NL', days: 3 }, fragments: 8 },
  { id: "call_c", name: "clock", arguments: { zone: "Europe/Amsterdam" }, fragments: 4 },
];

function assertBothCalled(completion) {
  const [choice] = completion.choices;
  assert.equal(choice.finish_reason, "tool_calls");
  const got = choice.message.tool_calls.map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: JSON.parse(call.function.arguments),
  }));
  const sent = twoCalls.map(({ fragments, ...call }) => call);
  assert.deepEqual(got, sent);
}

const refused = (client, saw, kind, expected, request, headers = {}) =>
  raised(saw, kind, expected, client.chat.completions.create(request, { headers }));

async function raised(saw, kind, [code, param, type = "invalid_request_error"], answer) {
  const error = await answer.then(
    (answer) => assert.fail(`no ${kind.name} but ${JSON.stringify(answer)}`),
    (error) => error,
  );
  assert.ok(error.constructor === kind, `${error.stack}`);
  assert.deepEqual([error.code, error.param, error.type], [code, param, type]);
  assert.ok(error.error.message);
  saw(error.requestID);
  return error;
}

const tokens = (usage) => ({
  input: usage.prompt_tokens,
  cached_input: usage.prompt_tokens_details.cached_tokens,
  output: usage.completion_tokens,
  reasoning: usage.completion_tokens_details.reasoning_tokens,
});

async function run(name) {
  const saw = (requestId, usage) => {
    assert.ok(requestId, "no request id");
    const line = { case: name, request_id: requestId, usage: usage ? tokens(usage) : null };
    console.log(JSON.stringify(line));
  };
  const defaultHeaders = { "x-sdk-case": name };
  await cases[name](new OpenAI({ baseURL, apiKey: key, defaultHeaders, timeout: 20_000 }), saw);
}

for (const name of process.argv.slice(2)) {
  try {
    await run(name);
  } catch (error) {
    console.error(`case ${name}:\n${error.stack}`);
    process.exitCode = 1;
  }
}
