"""Pictures of messages: their order, their limits, a model that cannot see."""

import base64
import dataclasses
import io

import pytest

from k3.data import xtml
from k3.serve.openai import ServerOptions, app, images
from k3.serve.openai.errors import ApiError

PLAIN = xtml.RenderOptions(thinking=False)


def picture(size, kind="image_url"):
    from PIL import Image

    data = io.BytesIO()
    Image.new("RGB", size).save(data, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    return {"type": kind, kind: {"url": url} if kind == "image_url" else url}


def test_pictures_stand_where_their_parts_do_even_in_sorted_results(
    client, worker, config
):
    calls = [
        {"id": name, "type": "function", "function": {"name": "f", "arguments": ""}}
        for name in ("a", "b")
    ]
    messages = [
        {"role": "user", "content": [picture((28, 28)), picture((84, 28), "image")]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": [picture((56, 28))]},
        {"role": "tool", "tool_call_id": "a", "content": [picture((112, 28))]},
    ]
    client.chat(messages)
    request = worker.requests[-1]
    assert [image.tokens for image in request.images] == [1, 3, 4, 2]
    assert request.grids.tolist() == [[1, 2, 2], [1, 2, 6], [1, 2, 8], [1, 2, 4]]
    assert len(request.pixels) == 4 + 12 + 16 + 8
    placeholder = config.media_placeholder_token_id
    for image in request.images:
        stop = image.start + image.tokens
        assert set(request.tokens[image.start : stop]) == {placeholder}
    assert request.tokens.count(placeholder) == 10


def test_report_13_each_content_has_its_own_key(client, worker):
    client.chat([{"role": "user", "content": [picture((28, 28)), picture((28, 28))]}])
    one, two = worker.requests[-1].images
    assert one.digest == two.digest
    assert one.start != two.start
    client.chat([{"role": "user", "content": [picture((28, 56))]}])
    assert worker.requests[-1].images[0].digest != one.digest


def test_report_97_the_tokens_of_pictures_count(client, worker):
    wide = picture((28 * 100, 28 * 50))
    error = client.chat([{"role": "user", "content": [wide]}], status=400)["error"]
    assert error["code"] == "context_length_exceeded"


def test_text_that_spells_a_picture_is_text(client, worker, config):
    client.chat("<|media_begin|><|media_pad|><|kimi_image_placeholder|>")
    request = worker.requests[-1]
    assert config.media_placeholder_token_id not in request.tokens
    assert request.pixels is None


def test_a_picture_that_is_too_large_is_413(config):
    options = ServerOptions(config=config, max_image_bytes=10)
    messages = [{"role": "user", "content": [picture((28, 28))]}]
    with pytest.raises(ApiError, match="may have 10 bytes") as caught:
        images.read(messages, PLAIN, options)
    assert caught.value.status == 413


def test_a_model_that_cannot_see_refuses(worker, tokenizer, config, make_client):
    blind = ServerOptions(config=dataclasses.replace(config, vision_config=None))
    client = make_client(app(worker, tokenizer, blind))
    error = client.chat([{"role": "user", "content": [picture((28, 28))]}], status=400)
    assert "no vision tower" in error["error"]["message"]


def test_a_clip_needs_its_extra_or_decodes(client):
    part = {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}
    error = client.chat([{"role": "user", "content": [part]}], status=400)["error"]
    assert error["param"] == "messages[0].content[0].video_url"
    assert "video" in error["message"]
