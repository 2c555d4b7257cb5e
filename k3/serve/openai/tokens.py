"""POST /tokenize and /detokenize, GET /tokenizer_info: the tokenizer over HTTP."""

from collections.abc import Mapping
from typing import Any

from k3.data import xtml
from k3.errors import RequestError
from k3.serve.openai import chat
from k3.serve.openai.errors import invalid
from k3.serve.openai.fields import Fields, wrong
from k3.serve.openai.service import Service

FIELDS = ("model", "prompt", *chat.RENDERED, "return_token_strs")


def tokenize(service: Service, body: Mapping[str, Any]) -> dict[str, Any]:
    """The ids of a text or of a conversation.

    A prompt that is exactly the name of a special token is that token, so that a
    client can ask for the ids that /tokenizer_info names; inside a text it is text.
    Raises: ApiError, RequestError.
    """
    fields = Fields(body)
    fields.refuse_unknown(FIELDS)
    service.model_name(fields.get("model"))
    if (fields.get("prompt") is None) == (fields.get("messages") is None):
        raise invalid("tokenize needs prompt or messages, one of them", "prompt")
    text = fields.text("prompt")
    if text is None:
        found = _conversation(service, fields)
    elif text in service.tokenizer.named_specials:
        found = [service.tokenizer.special_id(text)]
    else:
        found = service.tokenizer.encode(text)
    answer: dict[str, Any] = {
        "count": len(found),
        "max_model_len": service.options.context_tokens,
        "tokens": found,
    }
    if fields.flag("return_token_strs", False):
        answer["token_strs"] = [service.tokenizer.decode([i]) for i in found]
    return answer


def detokenize(service: Service, body: Mapping[str, Any]) -> dict[str, Any]:
    """The text of ids.

    Raises: ApiError.
    """
    fields = Fields(body)
    fields.refuse_unknown(("model", "tokens"))
    service.model_name(fields.get("model"))
    if not isinstance(fields.get("tokens"), list):
        raise wrong("tokens", "a list of token ids", fields.get("tokens"))
    ids = fields.integers("tokens", service.tokenizer.vocab_size - 1)
    return {"prompt": service.tokenizer.decode(ids)}


def info(service: Service) -> dict[str, Any]:
    """What a client needs to know of the tokenizer, special tokens by name and id."""
    tokenizer = service.tokenizer
    found: dict[str, Any] = {
        "tokenizer_class": "k3.data.Tokenizer",
        "name_or_path": service.options.names[0],
        "vocab_size": tokenizer.vocab_size,
        "model_max_length": service.options.context_tokens,
        "special_tokens": tokenizer.named_specials,
        # The wire format is code, not a template: POST messages to /tokenize.
        "chat_template": None,
    }
    for role in ("bos", "eos", "pad", "unk"):
        try:
            token_id = getattr(tokenizer, f"{role}_id")
        except RequestError:
            token_id = None
        name = None if token_id is None else tokenizer.decode([token_id])
        found |= {f"{role}_token": name, f"{role}_token_id": token_id}
    return found


def _conversation(service: Service, fields: Fields) -> list[int]:
    options = chat.render_options(fields)
    prompt = xtml.render(fields.get("messages"), options, None)
    return prompt.encode(service.tokenizer)
