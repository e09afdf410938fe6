"""What OpenAI's Python SDK gets through the gateway, asserted by the SDK's own objects.

Runs the cases named as arguments. Prints a JSON line for each answer or error that a case saw: the
case, the request id, and the tokens that the SDK showed. Whoever runs this compares them with the
ledger. Every request carries `x-sdk-case`, so that the provider's log tells the cases apart.
"""

import asyncio
import json
import os
import sys
import time
import traceback
import uuid

from openai import (
    APIError,
    APIStatusError,
    AsyncOpenAI,
    AuthenticationError,
    BadRequestError,
    InternalServerError,
    NotFoundError,
    OpenAI,
    PermissionDeniedError,
    RateLimitError,
    pydantic_function_tool,
)
from pydantic import BaseModel

BASE_URL = os.environ["TURNPIKE_URL"] + "/v1"
KEY = os.environ["TURNPIKE_KEY"]
# May use the model `pair` and no other.
NARROW_KEY = os.environ["TURNPIKE_NARROW_KEY"]

HELLO = [{"role": "user", "content": "Hello"}]
WITH_USAGE = {"include_usage": True}


def script(steps):
    """The header that tells the test provider what to answer."""
    return {"x-provider-script": json.dumps(steps)}


def named():
    """A request id of our own, for streams, whose helpers show no headers."""
    request_id = f"sdk-{uuid.uuid4()}"
    return request_id, {"x-request-id": request_id}


# --- answers ---


def plain(client, saw):
    completion = client.chat.completions.create(model="small", messages=HELLO)
    choice = completion.choices[0]
    assert completion.object == "chat.completion", completion
    assert choice.message.role == "assistant" and choice.message.content, choice
    assert choice.finish_reason == "stop", choice
    saw(completion._request_id, completion.usage)


def streamed(client, saw):
    completion = accumulate(client, saw)
    assert completion.usage is None, "nobody asked for it"


def streamed_with_usage(client, saw):
    completion = accumulate(client, saw, stream_options=WITH_USAGE)
    assert completion.usage.total_tokens > 0, completion


def accumulate(client, saw, **options):
    request_id, headers = named()
    with client.chat.completions.stream(
        model="small", messages=HELLO, extra_headers=headers, **options
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        completion = stream.get_final_completion()
    choice = completion.choices[0]
    assert len(pieces) > 1, pieces
    assert choice.message.content == "".join(pieces), choice
    assert choice.finish_reason == "stop", choice
    saw(request_id, completion.usage)
    return completion


def chunks(client, saw):
    """Each chunk as it comes, as programs read them that know no accumulator."""
    for options in ({}, {"stream_options": WITH_USAGE}):
        raw = client.chat.completions.with_raw_response.create(
            model="small", messages=HELLO, stream=True, **options
        )
        got = list(raw.parse())
        told = [chunk.usage for chunk in got if chunk.usage]
        without_choices = [chunk for chunk in got if not chunk.choices]
        assert len(told) == len(without_choices) == len(options), got
        assert len({chunk.id for chunk in got}) == 1, got
        saw(raw.headers["x-request-id"], told[0] if told else None)


def concurrent(client, saw):
    """The asynchronous client, four requests at once."""

    async def one(client):
        completion = await client.chat.completions.create(model="small", messages=HELLO)
        assert completion.choices[0].message.content, completion
        saw(completion._request_id, completion.usage)

    async def stream(client):
        request_id, headers = named()
        async with client.chat.completions.stream(
            model="small", messages=HELLO, stream_options=WITH_USAGE, extra_headers=headers
        ) as stream:
            pieces = [event.delta async for event in stream if event.type == "content.delta"]
            completion = await stream.get_final_completion()
        assert completion.choices[0].message.content == "".join(pieces), completion
        saw(request_id, completion.usage)

    async def refused(client):
        try:
            await client.chat.completions.create(model="nothing", messages=HELLO)
        except NotFoundError as error:
            saw(error.request_id, None)
        else:
            raise AssertionError("an unknown model was answered")

    async def all_at_once():
        async with AsyncOpenAI(
            base_url=BASE_URL, api_key=KEY, default_headers=client._custom_headers, timeout=20
        ) as own:
            await asyncio.gather(one(own), stream(own), one(own), stream(own), refused(own))

    asyncio.run(all_at_once())


# --- tools ---


class Weather(BaseModel):
    """Tells the weather of the days to come."""

    city: str
    days: int


class Clock(BaseModel):
    """Tells the time."""

    zone: str


TOOLS = [pydantic_function_tool(Weather, name="weather"), pydantic_function_tool(Clock, name="clock")]
# A quote and a backslash, which JSON within JSON escapes twice.
WEATHER = Weather(city='the "Hague" \\ NL', days=3)
CLOCK = Clock(zone="Europe/Amsterdam")
TWO_CALLS = script(
    {
        "tool_calls": [
            {"id": "call_w", "name": "weather", "arguments": WEATHER.model_dump(), "fragments": 8},
            {"id": "call_c", "name": "clock", "arguments": CLOCK.model_dump(), "fragments": 4},
        ]
    }
)


def tools(client, saw):
    """Two calls in one answer, and the second turn with their results."""
    completion = client.chat.completions.parse(
        model="small", messages=HELLO, tools=TOOLS, extra_headers=TWO_CALLS
    )
    assert_both_called(completion)
    saw(completion._request_id, completion.usage)
    message = completion.choices[0].message
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls
    ]
    completion = client.chat.completions.create(
        model="small", messages=[*HELLO, message, *results], tools=TOOLS
    )
    assert completion.choices[0].finish_reason == "stop", completion
    saw(completion._request_id, completion.usage)


def tools_streamed(client, saw):
    """The same calls, their arguments in fragments that the SDK puts together."""
    request_id, headers = named()
    with client.chat.completions.stream(
        model="small",
        messages=HELLO,
        tools=TOOLS,
        parallel_tool_calls=True,
        stream_options=WITH_USAGE,
        extra_headers=TWO_CALLS | headers,
    ) as stream:
        events = list(stream)
        completion = stream.get_final_completion()
    assert_both_called(completion)
    for index, fragments in ((0, 8), (1, 4)):
        deltas = [
            event.arguments_delta
            for event in events
            if event.type == "tool_calls.function.arguments.delta" and event.index == index
        ]
        # One more, empty, comes with the name.
        assert len(deltas) == fragments + 1, deltas
    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert [event.parsed_arguments for event in done] == [WEATHER, CLOCK], done
    saw(request_id, completion.usage)


def assert_both_called(completion):
    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls", choice
    got = [
        (call.id, call.function.name, call.function.parsed_arguments)
        for call in choice.message.tool_calls
    ]
    assert got == [("call_w", "weather", WEATHER), ("call_c", "clock", CLOCK)], got


# --- models ---


def models(client, saw):
    narrow = client.with_options(api_key=NARROW_KEY)
    assert [model.id for model in client.models.list()] == ["pair", "small"]
    assert [model.id for model in narrow.models.list()] == ["pair"]
    model = client.models.retrieve("small")
    assert (model.id, model.object, model.owned_by) == ("small", "model", "demo"), model
    assert model.created > 0, model
    saw(model._request_id, None)


# --- errors ---


def bad_request(client, saw):
    refused(client, saw, BadRequestError, "invalid_value", "model", model="")
    refused(client, saw, BadRequestError, "invalid_type", "model", model=7)


def authentication(client, saw):
    typo = KEY[:-1] + ("1" if KEY[-1] == "0" else "0")
    for key in (typo, "sk-test-unknown"):
        stranger = client.with_options(api_key=key)
        error = refused(stranger, saw, AuthenticationError, "invalid_api_key")
        assert key not in str(error), "an error shows the key"


def permission(client, saw):
    narrow = client.with_options(api_key=NARROW_KEY)
    expected = (PermissionDeniedError, "model_not_allowed", "model", "permission_error")
    refused(narrow, saw, *expected, model="small")
    raised(saw, *expected, lambda: narrow.models.retrieve("small"))


def not_found(client, saw):
    expected = (NotFoundError, "model_not_found", "model")
    error = refused(client, saw, *expected, model="no-such-model")
    assert "no-such-model" in error.body["message"], error.body
    raised(saw, *expected, lambda: client.models.retrieve("no-such-model"))


def provider_bad_request(client, saw):
    """A provider's own 400 keeps its words."""
    body = {
        "message": "This model's maximum context length is 8 tokens.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    error = refused(
        client,
        saw,
        BadRequestError,
        "context_length_exceeded",
        "messages",
        extra_headers=script({"status": 400, "error_body": {"error": body}}),
    )
    assert error.body == body, error.body


def provider_unauthorized(client, saw):
    """The gateway's credential is at fault: not the caller's 401, and nothing to try again."""
    expected = (InternalServerError, "provider_credential_rejected", None, "server_error")
    refused(client, saw, *expected, extra_headers=script({"status": 401}))


def broken_stream(client, saw):
    """A stream that breaks off raises, and is not taken for a short answer."""
    request_id, headers = named()
    pieces = []
    try:
        for chunk in client.chat.completions.create(
            model="small",
            messages=HELLO,
            stream=True,
            extra_headers=headers | script({"cut_after_chunks": 3}),
        ):
            pieces.append(chunk.choices[0].delta.content)
    except APIError as error:
        assert error.code == "provider_cut", error.body
    else:
        raise AssertionError(f"the stream ended well: {pieces}")
    assert any(pieces), "it had begun"
    saw(request_id, None)


def refused(client, saw, kind, code, param=None, error_type="invalid_request_error", **options):
    request = {"model": "small", "messages": HELLO} | options
    return raised(
        saw, kind, code, param, error_type, lambda: client.chat.completions.create(**request)
    )


def raised(saw, kind, code, param, *rest):
    *error_type, call = rest
    try:
        answer = call()
    except APIStatusError as error:
        assert type(error) is kind, f"{type(error)}: {error}"
        got = (error.code, error.param, error.type)
        assert got == (code, param, *(error_type or ["invalid_request_error"])), error.body
        assert error.body["message"], error.body
        saw(error.request_id, None)
        return error
    raise AssertionError(f"no {kind.__name__} but {answer}")


# --- retries ---


def retries_of_one_target(client, saw):
    """One target, which the gateway tries once: what the SDK tries again is all there is."""
    expected = (InternalServerError, None, None, "server_error")
    refused(client, saw, *expected, extra_headers=script({"status": 500}))


def retries_after_a_wait(client, saw):
    """A provider's Retry-After reaches the SDK, which waits as long."""
    begun = time.monotonic()
    expected = (RateLimitError, "rate_limit_exceeded", None, "rate_limit_error")
    headers = script({"status": 429, "retry_after": "2"})
    refused(client.with_options(max_retries=1), saw, *expected, extra_headers=headers)
    assert time.monotonic() - begun >= 2, "it did not wait"


def retries_of_a_plan(client, saw):
    """The gateway has tried both targets; the SDK is told not to try both again."""
    expected = (InternalServerError, None, None, "server_error")
    refused(client, saw, *expected, model="pair", extra_headers=script({"status": 500}))


def fall_over(client, saw):
    """The second target answers, and the SDK notices nothing."""
    raw = client.chat.completions.with_raw_response.create(
        model="pair", messages=HELLO, extra_headers=script([{"status": 503}, {}])
    )
    assert raw.retries_taken == 0
    assert raw.headers["x-turnpike-attempts"] == "2", raw.headers
    completion = raw.parse()
    assert completion.choices[0].message.content, completion
    saw(completion._request_id, completion.usage)


def tokens(usage):
    return {
        "input": usage.prompt_tokens,
        "cached_input": usage.prompt_tokens_details.cached_tokens,
        "output": usage.completion_tokens,
        "reasoning": usage.completion_tokens_details.reasoning_tokens,
    }


def run(name):
    def saw(request_id, usage):
        assert request_id, "no request id"
        line = {"case": name, "request_id": request_id, "usage": tokens(usage) if usage else None}
        print(json.dumps(line), flush=True)

    headers = {"x-sdk-case": name}
    with OpenAI(base_url=BASE_URL, api_key=KEY, default_headers=headers, timeout=20) as client:
        globals()[name](client, saw)


failed = []
for case in sys.argv[1:]:
    try:
        run(case)
    except Exception:
        print(f"case {case}:", file=sys.stderr)
        traceback.print_exc()
        failed.append(case)
if failed:
    sys.exit("failed: " + ", ".join(failed))
