"""The widgets of the reader by name: what a page shows, and `/api/eval`."""

from k3.reader.widgets.control import Control as Control
from k3.reader.widgets.graph_pane import element as graph
from k3.reader.widgets.page import element as element
from k3.reader.widgets.registry import evaluate as evaluate
from k3.reader.widgets.registry import get as get
from k3.reader.widgets.registry import names as names
from k3.reader.widgets.widget import Widget as Widget

__all__ = ["Control", "Widget", "element", "evaluate", "get", "graph", "names"]
