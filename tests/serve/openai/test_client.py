"""openai-python against the real engine, over a socket of this machine."""

import asyncio
import base64
import io
import json
import socket
import threading
import time

import openai
import pytest

from k3.model import Model
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.serve.openai import ServerOptions, app
from k3.serve.openai.server import Loading, Server, listen
from k3.serve.worker import Worker

GREEDY = {"temperature": 0}


@pytest.fixture(scope="module")
def served(config, tokenizer):
    """(url, engine) of a server in a thread, loaded as `k3 serve` loads."""
    import uvicorn

    model = Model(config).init_weights(seed=1)
    cache = CacheOptions(hash_tokens=16, block_tokens=32, chunk_tokens=64)
    engine = Engine(model, EngineOptions(cache=cache), tokenizer=tokenizer)
    application = app(None, tokenizer, ServerOptions(config=config, names=("toy",)))
    listening = listen("127.0.0.1", 0)
    made = uvicorn.Config(application, log_level="warning", lifespan="off")
    server = Server(made)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listening]))
    )
    ready = threading.Event()
    loading = Loading(
        lambda: Worker(engine), application.state.service, lambda error: ready.set()
    )
    thread.start()
    assert ready.wait(60)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", engine
    server.should_exit = True
    thread.join()
    loading.worker.close()


@pytest.fixture(scope="module")
def client(served):
    with openai.OpenAI(base_url=f"{served[0]}/v1", api_key="x", max_retries=0) as made:
        yield made


def user(content):
    return [{"role": "user", "content": content}]


def ask(client, content="hi", **fields):
    extra = {"reasoning_effort": "none"} | fields
    return client.chat.completions.create(
        model="toy", messages=user(content), max_tokens=4, **(GREEDY | extra)
    )


def test_models(client):
    (model,) = client.models.list().data
    assert (model.id, model.max_model_len) == ("toy", 4096)


def test_a_stream_says_what_the_whole_says(client):
    whole = ask(client, logprobs=True, top_logprobs=2, reasoning_effort="low")
    message = whole.choices[0].message
    assert message.reasoning_content == message.reasoning
    assert whole.usage.completion_tokens == 4
    chunks = list(
        ask(
            client,
            stream=True,
            stream_options={"include_usage": True},
            reasoning_effort="low",
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    thought = "".join(getattr(d, "reasoning_content", None) or "" for d in deltas)
    assert thought == (message.reasoning_content or "")
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    # The second time the prompt is found: report 86's second turn, seen by a client.
    assert chunks[-1].usage.prompt_tokens_details.cached_tokens >= 256
    assert chunks[-1].usage.completion_tokens_details.reasoning_tokens == 4


def test_report_53_hits_around_a_block_are_seen_in_the_usage(client):
    for length, cached in ((16, 0), (17, 16), (32, 16), (33, 32)):
        prompt = [(length * 7 + i) % 200 for i in range(length)]
        for want in (0, cached):
            found = client.completions.create(
                model="toy", prompt=prompt, max_tokens=1, **GREEDY
            )
            assert found.usage.prompt_tokens_details.cached_tokens == want


def test_report_95_samples_repeat_with_their_seed_and_differ(client):
    fields = {"n": 3, "seed": 7, "temperature": 1, "logprobs": True}
    texts = [
        [choice.message.content for choice in ask(client, **fields).choices]
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1
    alone = ask(client, **(fields | {"n": 1})).choices[0].message.content
    assert alone == texts[0][0]


def test_report_76_a_schema_holds_the_real_engine(client):
    schema = {"name": "s", "schema": {"enum": [True, None, 17]}}
    wanted = {"type": "json_schema", "json_schema": schema}
    for stream in (False, True):
        fields = {"response_format": wanted, "stream": stream, "temperature": 1}
        found = ask(client, **fields)
        if stream:
            parts = [c.choices[0] for c in found]
            text = "".join(part.delta.content or "" for part in parts)
            reason = parts[-1].finish_reason
        else:
            text = found.choices[0].message.content
            reason = found.choices[0].finish_reason
        # Four tokens hold the start of a value, or all of it.
        assert any(json.dumps(v).startswith(text) for v in (True, None, 17))
        assert reason in ("stop", "length")


def test_a_call_that_is_required_comes(client):
    tool = {"type": "function", "function": {"name": "f"}}
    tool["function"]["parameters"] = {"type": "object", "additionalProperties": False}
    found = client.chat.completions.create(
        model="toy",
        messages=user("hi"),
        tools=[tool],
        tool_choice={"type": "function", "function": {"name": "f"}},
        response_format={"type": "json_object"},
        seed=3,
        reasoning_effort="none",
        max_tokens=300,
        extra_body={"top_k": 1, "min_p": 0.0, "chat_template_kwargs": {}},
    )
    (choice,) = found.choices
    if choice.finish_reason == "tool_calls":
        (call,) = choice.message.tool_calls
        assert (call.function.name, call.function.arguments) == ("f", "{}")
    else:
        assert choice.finish_reason == "length"


def test_completions_echo_their_logprobs(client):
    found = client.completions.create(
        model="toy", prompt="abc", echo=True, logprobs=1, max_tokens=1, **GREEDY
    )
    logprobs = found.choices[0].logprobs
    assert logprobs.tokens[:3] == ["a", "b", "c"]
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])
    assert len(logprobs.tokens) == 4


def picture(colour, size=(56, 28)):
    from PIL import Image

    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def test_report_13_another_picture_is_another_prompt(client):
    cached = []
    for colour in ("black", "white", "black"):
        found = ask(client, [{"type": "text", "text": "x" * 40}, picture(colour)])
        cached.append(found.usage.prompt_tokens_details.cached_tokens)
    assert cached[0] <= cached[1] < cached[2]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "image_url", "image_url": {"url": "http://a.test/x.png"}}, "fetched"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}, "64"),
        ({"type": "image_url", "image_url": {"url": "data:a;base64,AAAA"}}, "whole"),
        ({"type": "image_url"}, "data URL"),
        ({"type": "video_url", "video_url": {"url": "data:video/x;base64,"}}, "contai"),
    ],
)
def test_pictures_that_cannot_be_read_are_refused_by_place(client, part, words):
    with pytest.raises(openai.BadRequestError, match=words) as caught:
        ask(client, [{"type": "text", "text": "x"}, part])
    assert caught.value.param.startswith("messages[0].content[1].")
    with pytest.raises(openai.BadRequestError, match="16 images"):
        ask(client, [picture("red")] * 17)


def test_errors_are_openais(client):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, temperature=9)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=user("x"))


@pytest.mark.parametrize("stream", [True, False])
def test_report_56_a_client_that_leaves_frees_what_it_held(served, stream):
    url, engine = served
    host, port = url.removeprefix("http://").split(":")
    body = {"prompt": "x" * 300, "max_tokens": 3000, "stream": stream}
    data = json.dumps(body | {"ignore_eos": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + data)
        wait(lambda: engine.busy)
    wait(lambda: not engine.busy)
    assert engine.snapshot().running == 0


def wait(holds):
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_report_86_ten_turns_with_calls_find_their_history(client):
    tool = {"type": "function", "function": {"name": "f"}}
    messages, before = user("hi"), 0
    for turn in range(10):
        found = client.chat.completions.create(
            model="toy", messages=messages, tools=[tool], max_tokens=2, **GREEDY
        )
        cached = found.usage.prompt_tokens_details.cached_tokens
        assert turn == 0 or cached >= before - 64
        before = found.usage.prompt_tokens
        call = {"id": f"c{turn}", "type": "function"}
        call["function"] = {"name": "f", "arguments": json.dumps({"n": turn})}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer["reasoning_content"] = "Hm."
        result = {"role": "tool", "tool_call_id": f"c{turn}", "content": str(turn)}
        messages = [*messages, answer, result]


def test_pictures_samples_and_logprobs_together(client):
    content = [picture("red"), {"type": "text", "text": "?"}]
    found = ask(client, content, n=2, logprobs=True, seed=3, temperature=1)
    assert len(found.choices) == 2
    prompt = found.usage.prompt_tokens
    assert ask(client, content).usage.prompt_tokens == prompt
    alone = ask(client, content, logprobs=True, seed=3, temperature=1).choices[0]
    assert alone.message.content == found.choices[0].message.content
