"""k3.model.generate: batches equal to running alone, ends, refusals."""

from pathlib import Path

import pytest
import torch

import k3
from k3.errors import RequestError
from k3.model.generate import GenerateOptions, generate, stream

GOLDEN = Path(__file__).parents[1] / "golden" / "tiny_release"
PROMPTS = [[5], [9, 8, 7, 6, 5, 4, 3], list(range(1, 20)), [200, 3]]
GREEDY = GenerateOptions(temperature=0.0, max_tokens=6, ignore_eos=True)


@pytest.fixture(scope="module")
def model():
    return k3.load(GOLDEN, dtype=torch.float32, experts="dequantized")


class Letters:
    """A tokenizer whose every id is one letter; its decoder holds one back."""

    def stream(self):
        return self

    def __init__(self):
        self.held = ""

    def push(self, token_id):
        out, self.held = self.held, chr(97 + token_id % 26)
        return out

    def flush(self):
        out, self.held = self.held, ""
        return out


class Fresh:
    def stream(self):
        return Letters()


def letters(ids):
    return "".join(chr(97 + i % 26) for i in ids)


def test_a_batch_of_different_lengths_gives_what_each_gives_alone(model):
    together = generate(model, PROMPTS, GREEDY)
    for prompt, among in zip(PROMPTS, together, strict=True):
        alone = generate(model, [prompt], GREEDY)[0]
        assert among.ids == alone.ids
        assert torch.allclose(
            torch.tensor(among.logprobs), torch.tensor(alone.logprobs), atol=1e-4
        )


def test_drawn_sequences_do_not_depend_on_the_batch(model):
    each = [
        GenerateOptions(seed=seed, max_tokens=length, ignore_eos=True, top_k=40)
        for seed, length in [(1, 3), (2, 7), (3, 0), (4, 5)]
    ]
    together = generate(model, PROMPTS, each)
    for prompt, option, among in zip(PROMPTS, each, together, strict=True):
        assert among.ids == generate(model, [prompt], option)[0].ids
        assert len(among.ids) == option.max_tokens


def test_generation_follows_the_whole_sequence_forward(model):
    out = generate(model, [PROMPTS[1]], GREEDY)[0]
    ids = torch.tensor([PROMPTS[1] + out.ids])
    logits = model(ids)[0]
    start = len(PROMPTS[1]) - 1
    assert logits[start:-1].argmax(-1).tolist() == out.ids
    expected = torch.log_softmax(logits[start:-1].double(), -1)
    chosen = expected.gather(-1, torch.tensor(out.ids)[:, None])[:, 0]
    assert torch.allclose(chosen, torch.tensor(out.logprobs).double(), atol=1e-4)


def test_the_stream_is_the_batch_token_by_token(model):
    options = GenerateOptions(max_tokens=5, seed=3, logprobs=2, ignore_eos=True)
    whole = generate(model, [PROMPTS[1]], options, tokenizer=Fresh())[0]
    parts = list(stream(model, PROMPTS[1], options, tokenizer=Fresh()))
    assert [token.id for token in parts] == whole.ids
    assert "".join(token.text for token in parts) == whole.text == letters(whole.ids)
    assert [token.finish for token in parts] == ["", "", "", "", "length"]
    assert [token.alternatives for token in parts] == whole.alternatives
    assert all(len(each) == 2 for each in whole.alternatives)


def test_the_same_seed_gives_the_same_text_and_another_seed_another(model):
    def ids(seed):
        options = GenerateOptions(max_tokens=12, seed=seed, ignore_eos=True)
        return generate(model, [[3, 4]], options)[0].ids

    assert ids(5) == ids(5)
    assert ids(5) != ids(6)


def test_a_stop_id_ends_the_sequence_and_is_its_last_token(model):
    free = generate(model, [PROMPTS[1]], GREEDY)[0].ids
    options = GenerateOptions(
        temperature=0.0, max_tokens=6, ignore_eos=True, stop_ids=(free[2],)
    )
    out = generate(model, [PROMPTS[1]], options, tokenizer=Fresh())[0]
    end = free.index(free[2]) + 1
    assert out.ids == free[:end]
    assert out.finish == "stop"
    assert out.text == letters(free[: end - 1])


def test_the_end_of_message_of_the_config_ends_unless_ignored(model, monkeypatch):
    free = generate(model, [PROMPTS[1]], GREEDY)[0].ids
    config = type(model.config).from_dict(
        model.config.to_dict() | {"eos_token_id": free[0]}
    )
    monkeypatch.setattr(model, "config", config)
    options = GenerateOptions(temperature=0.0, max_tokens=6)
    out = generate(model, [PROMPTS[1]], options)[0]
    assert (out.ids, out.finish) == ([free[0]], "stop")
    assert generate(model, [PROMPTS[1]], GREEDY)[0].ids == free


def test_a_stop_string_across_tokens_is_never_shown_in_part(model):
    free = generate(model, [PROMPTS[1]], GREEDY)[0].ids
    text = letters(free)
    stop = text[2:4]
    options = GenerateOptions(
        temperature=0.0, max_tokens=6, ignore_eos=True, stop=(stop, "never")
    )
    parts = list(stream(model, PROMPTS[1], options, tokenizer=Fresh()))
    assert "".join(token.text for token in parts) == text[: text.index(stop)]
    assert parts[-1].finish == "stop"


def test_no_tokens_may_be_asked_for(model):
    options = GenerateOptions(max_tokens=0)
    out = generate(model, [[1, 2]], options)[0]
    assert (out.ids, out.text, out.finish) == ([], "", "length")
    assert list(stream(model, [1, 2], options)) == []
    assert generate(model, [], options) == []


def test_generation_leaves_no_gradient_mode_behind(model):
    tokens = stream(model, [1, 2], GREEDY)
    next(tokens)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[]], {}, "a prompt needs at least one token"),
        ([[1], []], {}, "a prompt needs at least one token"),
        ([[256]], {}, "token ids must be from 0 to 255: got 256"),
        ([[-1]], {}, "token ids must be from 0 to 255: got -1"),
        ([[1]], {"stop": ("x",)}, "stop strings act on text: pass the tokenizer"),
        ([[1]], {"max_tokens": 10**9}, "must fit max_position_embeddings"),
    ],
)
def test_requests_that_cannot_be_served_are_refused(model, prompts, options, message):
    with pytest.raises(RequestError, match=message):
        generate(model, prompts, GenerateOptions(**options))


def test_the_stream_refuses_before_its_first_token(model):
    with pytest.raises(RequestError, match="at least one token"):
        stream(model, [], GREEDY)


def test_one_set_of_options_for_each_prompt(model):
    with pytest.raises(RequestError, match="got 1 for 2 prompts"):
        generate(model, [[1], [2]], [GREEDY])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": -1}, "max_tokens must be at least 0: got -1"),
        ({"temperature": -1.0}, "temperature must be at least 0"),
        ({"stop": ("",)}, "at least one character"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(RequestError, match=message):
        GenerateOptions(**options)
