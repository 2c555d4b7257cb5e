"""Which segments of a conversation the model writes itself, and so learns from."""

from collections.abc import Sequence

from k3.data.xtml import segments
from k3.data.xtml.segments import Segment


def emitted(pieces: Sequence[Segment]) -> list[bool]:
    """Whether the model writes each segment: what follows the generation prompt.

    Of an assistant message the program writes `<|open|>message …<|sep|>` and the
    opening of its first channel; all the rest, every marker up to and with
    <|end_of_msg|>, is the answer. Images are never written.
    """
    found = [False] * len(pieces)
    for start in assistants(pieces):
        for place in range(_answer(pieces, start), len(pieces)):
            piece = pieces[place]
            found[place] = not piece.special or piece.text in segments.MARKERS
            if _is(piece, segments.END):
                break
    return found


def assistants(pieces: Sequence[Segment]) -> list[int]:
    """Where each assistant message opens."""
    role = [" role", '="', "assistant", '"']
    return [
        place
        for place, piece in enumerate(pieces)
        if _is(piece, segments.OPEN)
        and [p.text for p in pieces[place + 1 : place + 6]] == ["message", *role]
    ]


def _answer(pieces: Sequence[Segment], start: int) -> int:
    """The segment after the second separator: behind the tag and the first channel."""
    separators = (
        place for place in range(start, len(pieces)) if _is(pieces[place], segments.SEP)
    )
    next(separators, None)
    return next(separators, len(pieces)) + 1


def _is(piece: Segment, marker: str) -> bool:
    """A marker of the renderer's own; user text that spells one is none."""
    return piece.special and piece.text == marker
