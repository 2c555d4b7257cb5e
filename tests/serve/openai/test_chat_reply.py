"""Chat answers: a stream is the whole, counts, stops, log-probabilities, samples."""

import random

import pytest

OPEN = "<|open|>{}<|sep|>"
CLOSE = "<|close|>{}<|sep|>"
DONE = CLOSE.format("message") + "<|end_of_msg|>"
CALL = '<|open|>call tool="{}" index="1"<|sep|>'
ARGUMENT = '<|open|>argument key="{}" type="{}"<|sep|>{}<|close|>argument<|sep|>'


def channel(name, body):
    return OPEN.format(name) + body + CLOSE.format(name)


def whole(thought="Hm.", said="Hello", calls=""):
    """An answer as K3 writes it, from inside think."""
    tools = channel("tools", calls) if calls else ""
    return thought + CLOSE.format("think") + channel("response", said) + tools + DONE


def call(name, *arguments):
    return CALL.format(name) + "".join(arguments) + CLOSE.format("call")


TEXTS = [
    *("", "a", "Grüße 😀", "x<|y", 'q"\\', "{", "\n\n", "你好", "own fox", "aaab"),
    *("<|op", "</think>", "\ud800".encode("utf-8", "replace").decode()),
]


def drawn(rng):
    """An answer of odd pieces: well formed, or with parts missing or shuffled."""
    calls = "".join(
        call(
            rng.choice(["f", "a-b", "a.b.c", ""]),
            *(
                ARGUMENT.format(key, kind, rng.choice([*TEXTS, "3", "null", "[1]"]))
                for key, kind in rng.sample(
                    [("k", "string"), ("n", "number"), ("k", "object"), ("é", "x")],
                    rng.randrange(4),
                )
            ),
        )
        for _ in range(rng.randrange(3))
    )
    text = whole(rng.choice(TEXTS), rng.choice(TEXTS) + rng.choice(TEXTS), calls)
    if rng.random() < 0.6:
        parts = text.split("<|sep|>")
        del parts[rng.randrange(len(parts))]
        if rng.random() < 0.3:
            rng.shuffle(parts)
        text = "<|sep|>".join(parts)
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.4 else text


def message_of(choice):
    message = choice["message"]
    calls = {
        index: {
            "id": each["id"].rsplit("_", 2)[1:],
            "name": each["function"]["name"],
            "arguments": each["function"]["arguments"],
        }
        for index, each in enumerate(message.get("tool_calls", ()))
    }
    found = {"calls": calls, "reason": choice["finish_reason"]}
    for key in ("content", "reasoning_content", "reasoning"):
        if message[key]:
            found[key] = message[key]
    return found | ({"problems": choice["problems"]} if "problems" in choice else {})


def streamed_of(choice):
    for each in choice["calls"].values():
        each["id"] = each["id"].rsplit("_", 2)[1:]
    return choice


def compare(client, worker, joined, rng, **fields):
    text = drawn(rng)
    ids = worker.tokenizer.encode(text, allow_special=True)
    if rng.random() < 0.2:
        # Halves of characters, and special tokens that are no markers.
        ids.insert(rng.randrange(len(ids) + 1), rng.choice([0xF0, 0x80, 300]))
    finish = rng.choice(["stop", "length", "abort"])
    worker.says, worker.finish = ids, finish
    worker.sizes = [rng.randrange(1, 30) for _ in ids]
    stop = rng.choice([None, ["own fox"], "aab", ["\n\n", "你"]])
    fields |= {"stop": stop, "logprobs": rng.random() < 0.3}
    said = client.chat(**fields)["choices"][0]
    worker.sizes = [rng.randrange(1, 30) for _ in ids]
    chunks = client.chat(stream=True, **fields)
    (found,) = joined(chunks).values()
    assert streamed_of(found) == message_of(said), (text, finish, stop)
    if fields["logprobs"]:
        entries = [
            entry
            for chunk in chunks
            for choice in chunk["choices"]
            for entry in (choice["logprobs"] or {"content": []})["content"]
        ]
        assert entries == said["logprobs"]["content"]


def test_report_10_streams_equal_wholes_at_random_cuts(client, worker, joined):
    rng = random.Random(10)
    for _ in range(120):
        compare(client, worker, joined, rng, reasoning_effort=None)


@pytest.mark.slow
def test_report_10_streams_equal_wholes_for_500_answers(client, worker, joined):
    rng = random.Random(11)
    for _ in range(500):
        effort = rng.choice(["none", "low", "max"])
        compare(client, worker, joined, rng, reasoning_effort=effort)


def test_report_2_calls_without_the_think_close(client, worker, joined):
    worker.says = "I must ask." + channel("tools", call("f")) + CLOSE.format("message")
    said = client.chat()["choices"][0]
    assert said["finish_reason"] == "tool_calls"
    assert said["message"]["reasoning_content"] == "I must ask."
    assert said["message"]["content"] is None
    assert said["message"]["tool_calls"][0]["function"]["name"] == "f"
    (found,) = joined(client.chat(stream=True)).values()
    assert streamed_of(found) == message_of(said)


def test_report_10_a_cut_in_think_is_reasoning_alone(client, worker, joined):
    worker.says, worker.finish = "half a thou", "length"
    said = client.chat(max_tokens=11)["choices"][0]
    assert said["message"]["reasoning"] == "half a thou"
    assert said["message"]["content"] is None
    assert said["finish_reason"] == "length"
    without = client.chat(reasoning_effort="none")["choices"][0]
    assert without["message"]["content"] == "half a thou"
    off = client.chat(chat_template_kwargs={"thinking": False})["choices"][0]
    assert off["message"]["content"] == "half a thou"


def test_report_20_a_malformed_call_is_named_and_the_good_one_survives(client, worker):
    bad = call("", ARGUMENT.format("k", "number", "three"))
    worker.says = whole(calls=bad + call("g", ARGUMENT.format("k", "object", "{")))
    said = client.chat()["choices"][0]
    (good,) = said["message"]["tool_calls"]
    assert good["function"] == {"name": "g", "arguments": '{"k": "{"}'}
    assert {"no tool", "invalid JSON"} <= set(said["problems"])
    assert 'kind="no tool"' in client.get("/metrics").text


def test_report_26_ids_are_unique_and_name_no_function(client, worker):
    worker.says = whole(calls=call("f") + call("f"))
    calls = client.chat()["choices"][0]["message"]["tool_calls"]
    again = client.chat()["choices"][0]["message"]["tool_calls"]
    ids = [each["id"] for each in (*calls, *again)]
    assert len(set(ids)) == 4
    assert all(len(each) <= 40 and "f." not in each for each in ids)
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": ids[1], "content": "second"},
        {"role": "tool", "tool_call_id": ids[0].replace("_", "-"), "content": "x"},
    ]
    client.chat(history)
    prompt = worker.tokenizer.decode(worker.requests[-1].tokens)
    assert 'role="tool" tool="f" index="1"' in prompt


@pytest.mark.parametrize(
    ("text", "stop", "seen", "reason"),
    [
        ("The quick brown fox jumps", "own fox", "The quick br", "stop"),
        ("aaab", "aab", "a", "stop"),
        ("no such thing", "own fox", "no such thing", "stop"),
        ("held ow", ["own fox"], "held ow", "stop"),
    ],
)
def test_report_35_stop_texts_leave_nothing_of_themselves(
    client, worker, joined, text, stop, seen, reason
):
    worker.says = whole("own fox aab", text)
    said = client.chat(stop=stop)["choices"][0]
    assert said["message"]["content"] == seen
    assert said["message"]["reasoning"] == "own fox aab"
    assert said["finish_reason"] == reason
    (found,) = joined(client.chat(stop=stop, stream=True)).values()
    assert found["content"] == seen
    assert bool(worker.cancelled) == (seen != text)


def test_report_79_the_end_mark_is_counted_and_not_shown(client, worker):
    worker.says = "abcd<|end_of_msg|>"
    found = client.chat(reasoning_effort="none")
    assert found["choices"][0]["message"]["content"] == "abcd"
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["usage"]["completion_tokens"] == 5
    assert worker.requests[-1].options.stop_ids == (258,)
    worker.says, worker.finish = "abcd" + DONE + "more", "length"
    found = client.chat(reasoning_effort="none", ignore_eos=True)
    assert found["choices"][0]["finish_reason"] == "length"
    assert found["choices"][0]["message"]["content"] == "abcd"
    assert worker.requests[-1].options.stop_ids == ()
    worker.finish = "stop"
    worker.says = whole(
        said="x", calls=call("f", ARGUMENT.format("k", "string", "<|e"))
    )
    said = client.chat()["choices"][0]["message"]["tool_calls"][0]
    assert said["function"]["arguments"] == '{"k": "<|e"}'


def test_stop_ids_end_without_being_shown(client, worker):
    worker.says = [*b"ab", ord("!")]
    found = client.chat(reasoning_effort="none", stop_token_ids=[ord("!")])
    assert found["choices"][0]["message"]["content"] == "ab"
    assert found["choices"][0]["finish_reason"] == "stop"
    assert found["usage"]["completion_tokens"] == 3


def test_logprobs_are_those_of_the_content(client, worker):
    worker.says = whole("Hm.", "a😀b")
    said = client.chat(logprobs=True, top_logprobs=2)["choices"][0]
    entries = said["logprobs"]["content"]
    data = bytes(byte for each in entries for byte in each["bytes"])
    assert data.decode() == "a😀b"
    assert [len(each["top_logprobs"]) for each in entries] == [2] * 6
    assert client.chat()["choices"][0]["logprobs"] is None


def test_report_95_samples_share_their_prompt_and_are_told_apart(
    client, worker, joined
):
    worker.says = lambda request, index: whole(said=f"sample {index}")
    found = client.chat(n=3, seed=7)
    said = [choice["message"]["content"] for choice in found["choices"]]
    assert said == ["sample 0", "sample 1", "sample 2"]
    assert worker.requests[-1].n == 3
    assert worker.requests[-1].options.seed == 7
    assert found["usage"]["prompt_tokens"] == len(worker.requests[-1].tokens)
    assert found["usage"]["completion_tokens"] == 3 * len(worker.ids(None, 0))
    streamed = joined(client.chat(n=3, stream=True))
    assert [streamed[index]["content"] for index in range(3)] == said


def test_usage_says_what_was_cached_and_what_was_thought(client, worker):
    worker.says, worker.cached = whole("Hm."), 64
    chunks = client.chat(stream=True, stream_options={"include_usage": True})
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    usage = chunks[-1]["usage"]
    assert chunks[-1]["choices"] == []
    assert usage["prompt_tokens_details"] == {"cached_tokens": 64}
    # Three letters of thought, and the closing tag: a marker, five letters, a marker.
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 10}
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_an_engine_that_fails_is_an_error_in_both_forms(client, worker):
    worker.says, worker.finish = "ab", "error"
    assert client.chat(status=500)["error"]["code"] == "engine_error"
    chunks = client.chat(stream=True)
    assert "it broke" in chunks[-1]["error"]["message"]
