"""What a request must keep to, checked before anything of it is run."""

import operator

from k3.config import K3Config
from k3.errors import RequestError
from k3.serve.request import Request


def check(request: Request, config: K3Config, *, texts: bool) -> None:
    """Refuse ids, stops and pictures that no engine with this config could run.

    `texts` says whether there is a tokenizer. Raises: RequestError.
    """
    _check_ids(request, config.text.vocab_size)
    if request.options.stop and not texts:
        raise RequestError(
            "stop strings act on text: start the engine with a tokenizer, or use "
            "stop_ids"
        )
    _check_pictures(request, config)


def _check_ids(request: Request, vocabulary: int) -> None:
    if not request.tokens:
        raise RequestError(
            "a prompt needs at least one token: got none; give a text, or one id to "
            "start from"
        )
    for token in (*request.tokens, *request.options.stop_ids):
        try:
            known = 0 <= operator.index(token) < vocabulary
        except TypeError:
            known = False
        if not known or isinstance(token, bool):
            raise RequestError(
                f"token ids must be from 0 to {vocabulary - 1}: got {token!r}; is the "
                "tokenizer of another checkpoint in use?"
            )


def _check_pictures(request: Request, config: K3Config) -> None:
    if not request.images and request.pixels is None:
        return
    if config.vision is None:
        raise RequestError(
            "this checkpoint has no vision tower: got a picture; load one whose config "
            "has a vision_config"
        )
    grids = 0 if request.grids is None else len(request.grids)
    if request.pixels is None or grids != len(request.images):
        raise RequestError(
            f"each of a request's images has its pixels and one grid: got "
            f"{len(request.images)} images, {grids} grids and "
            f"{'no ' if request.pixels is None else ''}pixels; see images.locate"
        )


def check_length(request: Request, limit: int, *, long: bool, seats: int) -> None:
    """Refuse a prompt that leaves no room for a token, or has no seat here."""
    count = len(request.tokens)
    if long and not seats:
        raise RequestError(
            f"this engine takes no long prompts: got {count} tokens; raise long_tokens "
            "or max_num_long_seqs"
        )
    if count >= limit:
        raise RequestError(
            f"prompt and answer must fit in {limit} tokens: got a prompt of {count}; "
            f"shorten it to at most {limit - 1}"
        )
