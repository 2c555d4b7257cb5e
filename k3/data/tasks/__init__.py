"""Synthetic tasks: sources of examples and questions, drawn from an index alone."""

from k3.data.tasks.item import Dialogue as Dialogue
from k3.data.tasks.item import Draw as Draw
from k3.data.tasks.item import Item as Item
from k3.data.tasks.item import Passage as Passage
from k3.data.tasks.item import Question as Question
from k3.data.tasks.item import Task as Task
from k3.data.tasks.lot import SPLITS as SPLITS
from k3.data.tasks.lot import Lot as Lot
from k3.data.tasks.lot import Split as Split
from k3.data.tasks.registry import DRAWS as DRAWS
from k3.data.tasks.registry import named as named
from k3.data.tasks.registry import texts as texts

__all__ = [
    "DRAWS",
    "SPLITS",
    "Dialogue",
    "Draw",
    "Item",
    "Lot",
    "Passage",
    "Question",
    "Split",
    "Task",
    "named",
    "texts",
]
