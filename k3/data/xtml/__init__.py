"""XTML, the wire format of K3: messages to segments, answers to messages."""

from k3.data.xtml.events import PROBLEMS as PROBLEMS
from k3.data.xtml.events import CallArguments as CallArguments
from k3.data.xtml.events import CallEnd as CallEnd
from k3.data.xtml.events import CallStart as CallStart
from k3.data.xtml.events import Content as Content
from k3.data.xtml.events import End as End
from k3.data.xtml.events import Event as Event
from k3.data.xtml.events import Message as Message
from k3.data.xtml.events import Problem as Problem
from k3.data.xtml.events import Reasoning as Reasoning
from k3.data.xtml.events import ToolCall as ToolCall
from k3.data.xtml.events import assemble as assemble
from k3.data.xtml.lex import Piece as Piece
from k3.data.xtml.lex import Pieces as Pieces
from k3.data.xtml.options import RenderOptions as RenderOptions
from k3.data.xtml.parse import Parser as Parser
from k3.data.xtml.parse import parse as parse
from k3.data.xtml.render import Prompt as Prompt
from k3.data.xtml.render import render as render
from k3.data.xtml.segments import Segment as Segment
from k3.data.xtml.segments import escape as escape
from k3.data.xtml.segments import unescape as unescape

__all__ = [
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
