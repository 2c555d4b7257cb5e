"""What `k3.data.xtml` offers by name."""

from k3.data import xtml

NAMES = [
    "PROBLEMS",
    "CallArguments",
    "CallEnd",
    "CallStart",
    "Content",
    "End",
    "Event",
    "Message",
    "Parser",
    "Piece",
    "Pieces",
    "Problem",
    "Prompt",
    "Reasoning",
    "RenderOptions",
    "Segment",
    "ToolCall",
    "assemble",
    "escape",
    "parse",
    "render",
    "unescape",
]


def test_public_names():
    assert xtml.__all__ == NAMES
    assert all(hasattr(xtml, name) for name in NAMES)
