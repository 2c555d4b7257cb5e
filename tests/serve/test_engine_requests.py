"""Stops, constraints, errors and pictures of single requests in the engine."""

import pytest
import torch
from serving import engine, request, run, same, tokens
from small import MEDIA, config, ids, model, schedule

from k3.errors import RequestError
from k3.serve import images
from k3.serve.request import Request

pytestmark = pytest.mark.usefixtures("unchecked")
FOUR = {"num_hidden_layers": 4, "linear": schedule(4)}


@pytest.fixture(scope="module")
def net():
    return model(made=config(**FOUR))


class Letters:
    """A tokenizer in which token i is a letter; `fails` at one of them."""

    def __init__(self, fails=None):
        self.fails = fails

    def stream(self):
        return self

    def push(self, token_id):
        if token_id == self.fails:
            raise ValueError("not a letter")
        return chr(48 + token_id)

    def flush(self):
        return ""


class Script:
    """A constraint that allows one token after another; None allows all."""

    def __init__(self, *script, end=None, at=0):
        self.script, self.end, self.at = script, end, at

    def mask(self):
        allowed = torch.zeros(61, dtype=torch.bool)
        wanted = self.script[self.at % len(self.script)]
        if wanted is None:
            return None
        allowed[list(wanted)] = True
        return allowed

    def accept(self, token_id):
        self.at += 1

    def rollback(self, n):
        self.at -= n

    def fork(self):
        return Script(*self.script, end=self.end, at=self.at)

    def done(self):
        return self.at == self.end


def test_a_constraint_rules_and_ends(net):
    rule = Script((3,), (4, 5), (6,), end=3)
    got = run(engine(net), [request("a", n=3, constraint=rule), request("b", 9)])
    for i in range(3):
        said = [t.id for t in tokens(got["a", i])]
        assert said in ([3, 4, 6], [3, 5, 6])
        assert got["a", i][-1].finish == "stop"
        assert tokens(got["a", i])[0].logprob == 0.0
    assert rule.at == 0
    same(got["b", 0], run(engine(net), [request("b", 9)])["b", 0])


def test_one_bad_request_never_kills_the_batch(net):
    """A constraint that allows nothing, one that raises, a decoder that raises."""

    class Raises(Script):
        def mask(self):
            raise KeyError("grammar")

        def fork(self):
            return Raises()

    good = [request(name, 9) for name in "abc"]
    bad = [
        request("no", constraint=Script((3,), ())),
        request("up", constraint=Raises()),
        request("at", constraint=Script(None, (7,), (8,))),
    ]
    made = engine(net, tokenizer=Letters(fails=8), max_num_seqs=8)
    got = run(made, [good[0], bad[0], good[1], bad[1], bad[2], good[2]])
    assert [got[one.id, 0][-1].finish for one in bad] == ["error"] * 3
    assert got["no", 0][-1].error == (
        "request no cannot go on after 1 tokens: the constraint allows no token here"
    )
    assert got["up", 0][-1].error == (
        "the engine failed on this request: KeyError; send it again"
    )
    assert [t.id for t in tokens(got["at", 0])][-1] == 7
    for one in good:
        want = run(engine(net, tokenizer=Letters()), [one])[one.id, 0]
        if 8 in {t.id for t in tokens(want)}:
            assert got[one.id, 0][-1].finish == "error"
        else:
            same(got[one.id, 0], want)
    assert made.snapshot().state_bytes == 0


def test_a_pass_that_fails_is_tried_again_one_by_one(net):
    """A prefill of several, then a decoding pass, fail once: nothing is lost."""
    made, forward, step = engine(net), net.forward, net.step
    asked = [request(name, 9) for name in "abc"]
    for one in asked:
        made.add(one)

    def fails(*args, **kwargs):
        raise MemoryError

    got = {}

    def take(outputs):
        for output in outputs:
            got.setdefault(output.request_id, []).append(output)

    try:
        net.forward = fails
        take(made.step())
        net.forward = forward
        take(made.step())
        net.step = fails
        take(made.step())
    finally:
        net.forward, net.step = forward, step
    while made.busy:
        take(made.step())
    for one in asked:
        same(got[one.id], run(engine(net), [one])[one.id, 0])
    made.add(request("d", 9))
    made.step()
    net.step = fails
    try:
        ends = run(made)["d", 0]
    finally:
        net.step = step
    assert ends[-1].error.startswith("the engine failed on this request: MemoryError")


def test_report_79_the_end_of_message_ends_and_is_not_shown(net):
    """The fifth token is the end of message: five tokens, its text is not shown."""
    rule = Script((3,), (4,), (5,), (6,), (59,), (7,))
    made = engine(net, tokenizer=Letters())
    ends = request("a", constraint=rule, ignore_eos=False)
    on = request("b", constraint=rule, ignore_eos=True)
    mine = request("c", constraint=rule, stop_ids=(5, 4))
    got = run(made, [ends, on, mine])
    assert [t.id for t in tokens(got["a", 0])] == [3, 4, 5, 6, 59]
    assert "".join(t.text for t in tokens(got["a", 0])) == "3456"
    assert got["a", 0][-1].finish == "stop"
    assert len(tokens(got["b", 0])) == 12
    assert [t.id for t in tokens(got["c", 0])] == [3, 4]


def test_report_35_text_before_a_stop_string_is_whole(net):
    rule = Script(*((ord(letter) - 48,) for letter in "abaabc0"))
    made = engine(net, tokenizer=Letters())
    asked = {
        "hit": request("hit", constraint=rule, stop=("aab",)),
        "miss": request("miss", constraint=rule, stop=("zz",)),
        "none": request("none", constraint=rule),
    }
    got = run(made, asked.values())
    text = {n: "".join(t.text for t in tokens(got[n, 0])) for n in asked}
    assert text["hit"] == "ab"
    assert got["hit", 0][-1].finish == "stop"
    assert text["miss"] == text["none"] == "abaabc0abaab"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ()}, "at least one token: got none"),
        ({"tokens": (1, 61)}, "must be from 0 to 60: got 61"),
        ({"tokens": (1, True)}, "must be from 0 to 60: got True"),
        ({"tokens": (1, "a")}, "must be from 0 to 60: got 'a'"),
        ({"stop_ids": (99,)}, "must be from 0 to 60: got 99"),
        ({"stop": ("x",)}, "start the engine with a tokenizer"),
        ({"tokens": (1, MEDIA)}, "every media placeholder needs the content"),
        ({"pixels": torch.zeros(1)}, "this checkpoint has no vision tower"),
    ],
)
def test_what_can_never_run_is_refused(net, change, message):
    made = engine(net)
    with pytest.raises(RequestError, match=message):
        made.add(request("a", **change))
    assert not made.busy


def test_long_prompts_need_a_seat(net):
    made = engine(net, long_tokens=10, max_num_long_seqs=0)
    with pytest.raises(RequestError, match="takes no long prompts: got 11 tokens"):
        made.add(request("a", 11))


@pytest.mark.parametrize("name", ["n", "prompt_logprobs"])
def test_counts_are_whole_numbers(name):
    with pytest.raises(RequestError, match=f"{name} must be a whole number"):
        request("a", **{name: -1})


@pytest.fixture(scope="module")
def eyes():
    return model(made=config(vision={}, **FOUR))


def picture(net, name, shade, before=20, after=5, **options):
    """A prompt with one picture of one shade behind some text."""
    size = net.config.vision.patch_size
    grids = torch.tensor([[1, 4, 6]])
    pixels = torch.full((24, 3, size, size), shade)
    words = ids(before + after, seed=3, words=50).tolist()
    prompt = (*words[:before], *([MEDIA] * 6), *words[before:])
    return request(
        name,
        tokens=prompt,
        images=images.locate(prompt, pixels, grids, net.config),
        pixels=pixels,
        grids=grids,
        seed=1,
        **options,
    )


def test_report_13_pictures_are_told_apart_and_encoded_once(eyes):
    made = engine(eyes)
    black, white = picture(eyes, "black", 0.0), picture(eyes, "white", 1.0)
    got = run(made, [black]) | run(made, [white])
    assert got["white", 0][0].cached_tokens == 16
    again = run(made, [picture(eyes, "again", 0.0)])["again", 0]
    assert made.snapshot().images_encoded == 2
    same(again, got["black", 0])
    alone = run(engine(eyes), [white])["white", 0]
    same(got["white", 0], alone)
    assert [t.logprob for t in tokens(alone)] != [t.logprob for t in tokens(again)]
    moved = picture(eyes, "moved", 0.0, before=21)
    assert run(made, [moved])["moved", 0][0].cached_tokens == 16
    assert made.snapshot().images_encoded == 2


def test_pictures_in_a_batch_with_samples_and_preemption(eyes):
    """Also when the model itself says a placeholder before it is preempted."""
    rule = Script((3,), (MEDIA,), None, None)
    asked = [
        picture(eyes, "a", 0.3, n=2, constraint=rule),
        picture(eyes, "b", 0.7, before=40),
        request("c", 9),
    ]
    made = engine(eyes, max_num_batched_tokens=70)

    def each(step):
        if step in (1, 5) and made.short.active:
            made.short.send_back(made.short.active[0])
            made.reset_prefix_cache()

    got = run(made, asked, each=each)
    for one in asked:
        want = run(engine(eyes), [one])
        for i in range(one.n):
            same(got[one.id, i], want[one.id, i])


def test_pictures_come_with_their_pixels(eyes):
    asked = picture(eyes, "a", 0.0)
    made = engine(eyes)
    fields = {"id": "a", "tokens": asked.tokens, "options": asked.options}
    with pytest.raises(RequestError, match="1 images, 0 grids and no pixels"):
        made.add(Request(**fields, images=asked.images))
    seven = (MEDIA,) * 7
    with pytest.raises(RequestError, match=r"7 placeholders for pictures of \[6\] row"):
        images.locate(seven, asked.pixels, asked.grids, eyes.config)
