"""The engine as a speaker: a conversation is rendered, answered, read."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

import k3
from k3.checkpoint import locate
from k3.data import xtml
from k3.data.xtml import RenderOptions
from k3.errors import RequestError
from k3.model.generate import GenerateOptions, generate
from k3.post import episode
from k3.post.speaker import ContextFull, Sampling
from k3.post.speaker_engine import EngineSpeaker
from k3.serve import Engine, EngineOptions, Worker

ASK = [{"role": "user", "content": "Where is Rome?"}]
PLAIN = RenderOptions(thinking=False, thinking_effort=None)


@pytest.fixture(scope="module")
def speaker():
    tokenizer = k3.tokenizer(locate.locate("tiny"))
    engine = Engine(k3.load("tiny"), EngineOptions(), tokenizer=tokenizer)
    worker = Worker(engine)
    yield EngineSpeaker(worker, tokenizer, engine.model.config)
    worker.close()


def test_it_says_what_generation_says(speaker):
    found = speaker.answer(ASK, PLAIN, Sampling(temperature=0.0, max_tokens=16))
    ids = xtml.render(ASK, PLAIN).encode(speaker.tokenizer)
    options = GenerateOptions(
        max_tokens=16, temperature=0.0, stop_ids=(episode.end_id(speaker.tokenizer),)
    )
    (done,) = generate(k3.load("tiny"), [ids], options)
    assert found.usage.written == len(done.ids)
    assert (found.usage.read, found.usage.cached) == (len(ids), 0)
    assert found.message == episode.read(done.ids, speaker.tokenizer, "response")


def test_many_ask_at_once_and_get_what_they_get_alone(speaker):
    def ask(seed):
        return speaker.answer(ASK, PLAIN, Sampling(seed=seed, max_tokens=8))

    with ThreadPoolExecutor(5) as pool:
        together = list(pool.map(ask, range(5)))
    assert together == [ask(seed) for seed in range(5)]
    assert len({str(each.message) for each in together}) > 1


def test_an_answer_fits_the_context_or_there_is_none(speaker):
    count = len(xtml.render(ASK, PLAIN).encode(speaker.tokenizer))
    tight = Sampling(temperature=0.0, context_tokens=count + 2, max_tokens=16)
    found = speaker.answer(ASK, PLAIN, tight)
    assert (found.usage.written, found.message.finish_reason) == (2, "length")
    with pytest.raises(ContextFull, match=f"got {count} tokens in a context of"):
        speaker.answer(ASK, PLAIN, Sampling(context_tokens=count))


def test_pictures_are_seen_where_they_stand(speaker):
    stored = io.BytesIO()
    Image.new("L", (28, 28), 255).save(stored, "png")
    url = "data:image/png;base64," + base64.b64encode(stored.getvalue()).decode()
    picture = {"type": "image_url", "image_url": {"url": url}}
    ask = [{"role": "user", "content": [{"type": "text", "text": "Which?"}, picture]}]
    short = Sampling(temperature=0.0, max_tokens=2)
    found = speaker.answer(ask, PLAIN, short)
    words = [{"role": "user", "content": [{"type": "text", "text": "Which?"}]}]
    alone = speaker.answer(words, PLAIN, short)
    assert alone == speaker.answer([{**words[0], "content": "Which?"}], PLAIN, short)
    assert found.usage.read > alone.usage.read
    far = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    ]
    with pytest.raises(RequestError, match="messages"):
        speaker.answer(far, PLAIN, short)
