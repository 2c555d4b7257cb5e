"""POST /v1/completions: texts or ids continued, echoed, with log-probabilities."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from k3.errors import RequestError
from k3.model.completion import GenerateOptions
from k3.serve.openai import chat, sampling
from k3.serve.openai.completions_reply import CompletionsReply
from k3.serve.openai.errors import invalid
from k3.serve.openai.fields import Fields, wrong
from k3.serve.openai.reply import Identity
from k3.serve.openai.service import Service
from k3.serve.request import Request

FIELDS = (
    *("model", "prompt", *sampling.FIELDS, "echo", "logprobs", "best_of"),
    *("stream", "stream_options", "cache_salt", "return_token_ids"),
)
# What OpenAI takes when nothing is said.
DEFAULT_TOKENS = 16


def prepare(
    service: Service, body: Mapping[str, Any], tenant: bytes
) -> CompletionsReply:
    """The reply to a request body, ready to run; ids may be what a model wrote.

    Raises: ApiError, RequestError.
    """
    fields = Fields(body)
    fields.refuse_unknown(FIELDS)
    model = service.model_name(fields.get("model"))
    logprobs = _logprobs(service, fields)
    echo = fields.flag("echo", False)
    name = f"cmpl-{secrets.token_hex(12)}"
    options = sampling.read(
        fields,
        vocabulary=service.options.config.text.vocab_size,
        logprobs=logprobs or 0,
    )
    options = replace(options, stop=sampling.stops(fields))
    requests = [
        Request(
            id=f"{name}-{place}",
            tokens=tokens,
            options=_ended(service, fields, options, len(tokens)),
            n=_samples(service, fields),
            salt=chat.salted(fields, tenant),
            prompt_logprobs=logprobs if echo else None,
            spoken=True,
        )
        for place, tokens in enumerate(read_prompts(service, fields.get("prompt")))
    ]
    return CompletionsReply(
        requests,
        service.tokenizer,
        Identity(id=name, model=model, fingerprint=service.options.fingerprint),
        echo=echo,
        logprobs=logprobs is not None,
        token_ids=fields.flag("return_token_ids", False),
        include_usage=chat.include_usage(fields),
    )


def _samples(service: Service, fields: Fields) -> int:
    """How many samples of each prompt; `best_of` may say the same."""
    n = sampling.samples(fields, service.options.max_n)
    if fields.integer("best_of", n, 1, service.options.max_n) != n:
        raise invalid(
            "best_of must be n: no sample is dropped; leave it out", "best_of"
        )
    return n


def _logprobs(service: Service, fields: Fields) -> int | None:
    """How many alternatives to each token; None for no log-probabilities."""
    if fields.get("logprobs") is False:
        return None
    return fields.integer("logprobs", None, 0, service.options.max_logprobs)


def _ended(
    service: Service, fields: Fields, options: GenerateOptions, prompt_tokens: int
) -> GenerateOptions:
    """The options with the end that the prompt leaves room for."""
    wanted = sampling.wanted_tokens(fields, 0)
    wanted = DEFAULT_TOKENS if wanted is None else wanted
    room = chat.room_for(service, prompt_tokens, "prompt")
    return replace(options, max_tokens=min(room, wanted))


def read_prompts(service: Service, given: Any) -> list[tuple[int, ...]]:
    """The ids of each prompt: a text, ids, or a list of either.

    Raises: ApiError 400.
    """
    rule = "a text, a list of token ids, or a list of those"
    if isinstance(given, str) or _is_ids(given):
        given = [given]
    if not isinstance(given, list) or not given:
        raise wrong("prompt", rule, given)
    if len(given) > service.options.max_prompts:
        raise wrong("prompt", f"at most {service.options.max_prompts} prompts", given)
    return [_ids(service, each, rule) for each in given]


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def _ids(service: Service, given: Any, rule: str) -> tuple[int, ...]:
    if isinstance(given, str):
        found = tuple(service.tokenizer.encode(given))
    elif _is_ids(given):
        last = service.options.config.text.vocab_size - 1
        found = Fields({"prompt": given}).integers("prompt", last)
    elif given == []:
        found = ()
    else:
        raise wrong("prompt", rule, given)
    if not found:
        raise invalid(
            "prompt must hold at least one token: got an empty one; start with the "
            f"beginning-of-text id [{_first_id(service)}]",
            "prompt",
        )
    return found


def _first_id(service: Service) -> int:
    try:
        return service.tokenizer.bos_id
    except RequestError:
        return 0
