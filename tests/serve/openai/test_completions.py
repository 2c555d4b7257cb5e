"""Text completions: prompts of every kind, echo, log-probabilities, streams."""

import pytest


@pytest.mark.parametrize(
    ("prompt", "want"),
    [
        ("ab", [(97, 98)]),
        ([97, 98], [(97, 98)]),
        (["ab", "c"], [(97, 98), (99,)]),
        ([[97], [98, 99]], [(97,), (98, 99)]),
    ],
)
def test_prompts_are_texts_ids_or_lists(client, worker, prompt, want):
    found = client.complete(prompt, n=2)
    assert sorted(request.tokens for request in worker.requests) == sorted(want)
    assert [choice["index"] for choice in found["choices"]] == list(
        range(2 * len(want))
    )
    assert found["usage"]["prompt_tokens"] == sum(map(len, want))


@pytest.mark.parametrize("prompt", [None, "", [], [[]], [9999], [-1], [True], {}, 3])
def test_other_prompts_are_refused(client, prompt):
    error = client.complete(prompt, status=400)["error"]
    assert error["param"] == "prompt"


def test_echo_and_logprobs_as_lm_eval_reads_them(client, worker):
    worker.says = "cd"
    found = client.complete("ab", echo=True, logprobs=1, max_tokens=1, temperature=0)
    (choice,) = found["choices"]
    assert choice["text"] == "abc"
    assert choice["logprobs"] == {
        "tokens": ["a", "b", "c"],
        "token_logprobs": [None, -0.5, -0.25],
        "top_logprobs": [None, {"\x01": -0.1, "b": -0.5}, {"c": -0.25}],
        "text_offset": [0, 1, 2],
    }
    assert worker.requests[-1].prompt_logprobs == 1
    client.complete("ab", logprobs=1)
    assert worker.requests[-1].prompt_logprobs is None
    assert client.complete("ab", echo=True)["choices"][0]["logprobs"] is None


def test_a_stream_is_the_whole(client, worker):
    worker.says = lambda request, index: f"{len(request.tokens)}-{index} 😀"
    fields = {"prompt": ["ab", "c"], "n": 2, "logprobs": 1, "echo": True}
    whole = client.complete(**fields)
    chunks = client.complete(**fields, stream=True)
    for choice in whole["choices"]:
        mine = [c["choices"][0] for c in chunks if c["choices"]]
        mine = [c for c in mine if c["index"] == choice["index"]]
        assert "".join(c["text"] for c in mine) == choice["text"]
        assert mine[-1]["finish_reason"] == choice["finish_reason"] == "stop"
        for name, values in choice["logprobs"].items():
            assert [v for c in mine for v in c["logprobs"][name]] == values
    last = client.complete("ab", stream=True, stream_options={"include_usage": True})
    assert last[-1]["usage"]["prompt_tokens"] == 2


def test_stop_texts_are_the_engines(client, worker):
    client.complete("ab", stop=["x", ""], best_of=1, suffix=None)
    assert worker.requests[-1].options.stop == ("x",)
    assert "best_of" in client.complete("ab", best_of=2, status=400)["error"]["message"]


def test_one_prompt_that_fails_ends_all(client, worker):
    from k3.errors import RequestError

    worker.error = RequestError("the queue is full: try again")
    assert client.complete(["ab", "c"], status=429)["error"]["type"]


def test_minus_infinity_is_a_number_that_json_has(client, worker, monkeypatch):
    from k3.serve.openai import reply

    assert reply.finite(float("-inf")) == -9999.0
    assert reply.finite(-0.5) == -0.5


def test_ids_are_told_where_they_are_asked_for(client, worker):
    """As vLLM tells them: what was written, chunk by chunk, the end included."""
    worker.says = "cd"
    (choice,) = client.complete("ab", return_token_ids=True)["choices"]
    assert choice["token_ids"] == [99, 100]
    chunks = client.complete([97, 98], return_token_ids=True, logprobs=1, stream=True)
    told = [c["choices"][0] for c in chunks if c["choices"]]
    assert [i for c in told for i in c["token_ids"]] == [99, 100]
    assert all(
        len(c["token_ids"]) == len(c["logprobs"]["token_logprobs"]) for c in told
    )
    assert "token_ids" not in client.complete("ab")["choices"][0]
    assert client.complete("ab", return_token_ids=1, status=400)["error"]
