"""How tokens are drawn and where they end, read from a request body."""

import secrets

from k3.model.completion import GenerateOptions
from k3.serve.openai.fields import Fields, wrong

FIELDS = (
    *("temperature", "top_p", "top_k", "min_p", "seed", "n", "stop"),
    *("stop_token_ids", "ignore_eos", "max_tokens", "max_completion_tokens"),
)
# OpenAI takes four stops; a few more hurt nobody.
MAX_STOPS = 64
MAX_STOP_LENGTH = 4096
TOP_P = 0.95


def read(fields: Fields, *, vocabulary: int, logprobs: int) -> GenerateOptions:
    """The options without their end: `max_tokens` waits for the length of the prompt.

    Temperature is 1 and top_p 0.95 when absent, as the release advises; top_k -1 is
    all. Without a seed one is drawn.
    """
    top_k = fields.integer("top_k", 0, -1, 2**31 - 1) or 0
    seed = fields.integer("seed", None, -(2**63), 2**63 - 1)
    return GenerateOptions(
        temperature=fields.number(
            "temperature", 1.0, "a number from 0 to 2", lambda value: 0 <= value <= 2
        ),
        top_p=fields.number(
            "top_p", TOP_P, "a number above 0 and at most 1", lambda v: 0 < v <= 1
        ),
        min_p=fields.number(
            "min_p", 0.0, "a number from 0 to 1", lambda value: 0 <= value <= 1
        ),
        top_k=max(0, top_k),
        seed=secrets.randbits(63) if seed is None else seed % 2**63,
        stop_ids=fields.integers("stop_token_ids", vocabulary - 1),
        ignore_eos=fields.flag("ignore_eos", False),
        logprobs=logprobs,
    )


def stops(fields: Fields) -> tuple[str, ...]:
    """The stop texts: one, or a list of them; an empty text is none."""
    value = fields.get("stop")
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else value
    rule = f"a text or a list of at most {MAX_STOPS} texts"
    if not isinstance(found, list) or len(found) > MAX_STOPS:
        raise wrong("stop", rule, value)
    for each in found:
        if not isinstance(each, str) or len(each) > MAX_STOP_LENGTH:
            raise wrong("stop", rule, each)
    return tuple(each for each in found if each)


def wanted_tokens(fields: Fields, least: int) -> int | None:
    """How many tokens the client wants at most; the newer name counts first."""
    for name in ("max_completion_tokens", "max_tokens"):
        found = fields.integer(name, None, least, 2**63 - 1)
        if found is not None:
            return found
    return None


def samples(fields: Fields, most: int) -> int:
    """How many answers to one prompt."""
    return fields.integer("n", 1, 1, most) or 1
