"""Prompts from the command line: texts, ids and pictures as token ids and rows."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from k3.cli import output
from k3.cli.loading import Loaded
from k3.errors import RequestError

if TYPE_CHECKING:
    from torch import Tensor

# Something that the shipped model has read about: `k3 generate` alone says something.
EXAMPLE = "Return True if"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: its text where there is one, its ids, its image rows."""

    text: str
    ids: list[int]
    features: "Tensor | None" = None


@dataclass(frozen=True, slots=True)
class Typed:
    """What the command and its standard input say: texts or ids, and pictures."""

    texts: list[str]
    ids: str
    images: list[str]


def typed(texts: list[str] | None, ids: str, images: list[str] | None) -> Typed:
    """The texts given, else standard input, else the example; none beside ids.

    At a terminal standard input is not read.
    """
    given = Typed(texts or [], ids, images or [])
    _check(given.texts, ids, given.images)
    if given.texts or ids:
        return given
    piped = _piped()
    if piped or given.images:
        return Typed([piped or ""], "", given.images)
    if piped is not None:
        output.warn(f"no -p, and nothing on standard input: {EXAMPLE!r} is continued")
    return Typed([EXAMPLE], "", [])


def read(loaded: Loaded, given: Typed) -> list[Prompt]:
    """The same as ids and image rows."""
    if given.images:
        text = given.texts[0] if given.texts else ""
        return [_with_pictures(loaded, text, given.ids, given.images)]
    if given.ids:
        return [Prompt("", parse_ids(given.ids))]
    return [Prompt(text, loaded.encode(text)) for text in given.texts]


def line(text: str) -> str:
    """A text of standard input without the line end that closes it."""
    return text.removesuffix("\n").removesuffix("\r")


def not_utf8(error: UnicodeDecodeError) -> RequestError:
    """The sentence for bytes on standard input that are no text."""
    return RequestError(
        f"standard input must be text in {error.encoding}: got byte "
        f"0x{error.object[error.start]:02x}; convert it first"
    )


def _piped() -> str | None:
    """What standard input holds; None at a terminal."""
    if sys.stdin is None:
        return ""
    try:
        return None if sys.stdin.isatty() else line(sys.stdin.read())
    except UnicodeDecodeError as error:
        raise not_utf8(error) from error
    except (OSError, ValueError):
        # Closed, or nothing that can be read: as good as empty.
        return ""


def _check(texts: list[str], ids: str, images: list[str]) -> None:
    """Refuse what cannot be one request, and ids that are none."""
    if ids:
        parse_ids(ids)
    if texts and ids:
        raise RequestError("a prompt is text or ids: got both -p and --ids; drop one")
    if images and len(texts) > 1:
        raise RequestError(
            f"pictures go with one prompt: got {len(texts)}; give -p once"
        )


def parse_ids(text: str) -> list[int]:
    """Token ids separated by commas or spaces."""
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        raise RequestError(
            f"--ids needs whole numbers separated by commas: got {text!r}"
        ) from error


def all_features(prompts: list[Prompt]) -> "Tensor | None":
    """The image rows of all prompts in order."""
    import torch

    rows = [prompt.features for prompt in prompts if prompt.features is not None]
    return torch.cat(rows) if rows else None


def _with_pictures(loaded: Loaded, text: str, ids: str, files: list[str]) -> Prompt:
    """The pictures before the text, each placeholder grown to its rows."""
    import torch

    from k3.data import media

    config = loaded.model.config
    placeholder = config.media_placeholder_token_id
    if config.vision is None or placeholder is None:
        raise RequestError(
            f"--image needs a model with a vision tower: {loaded.path} has none; "
            f"load another or leave the picture out"
        )
    limits = media.ImageLimits.load(loaded.path)
    patches, grids = media.preprocess_all(files, limits)
    tokens = parse_ids(ids) if ids else _picture_ids(loaded, text, files)
    expanded = media.expand_placeholders(tokens, grids, placeholder)
    with torch.no_grad():
        features = loaded.model.encode_images(
            torch.from_numpy(patches).to(loaded.model.device),
            torch.from_numpy(grids).to(loaded.model.device),
        )
    return Prompt(text, expanded, features)


def _picture_ids(loaded: Loaded, text: str, files: list[str]) -> list[int]:
    """Only our own picture prompt may hold special tokens, the text never."""
    from k3.data import images, media

    tokenizer = loaded.needed_tokenizer()
    most = media.ImageLimits.load(loaded.path).max_pixels
    tokens: list[int] = []
    for file in files:
        size = images.read(file, most).size
        tokens += tokenizer.encode(media.prompt_text(*size), allow_special=True)
    return tokens + tokenizer.encode(text)
