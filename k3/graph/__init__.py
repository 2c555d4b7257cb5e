"""Typed tensor graphs: the packed steps of Kimi K3 as programs that can be read.

A graph is built from primitives with symbolic dimensions; a shape error is raised where
the term is built. It is evaluated on any carrier of `spec.ops`, rendered as LaTeX, DOT
and JSON, compared with the equations by `refute`, and lowered to torch by
`k3.verify.lower`.
"""

from k3.graph.display import get as get
from k3.graph.display import run as run
from k3.graph.display import show as show
from k3.graph.evaluate import evaluate as evaluate
from k3.graph.json_form import load as load
from k3.graph.steps import catalogue as catalogue
from k3.graph.term import Block as Block
from k3.graph.term import Term as Term

__all__ = ["Block", "Term", "catalogue", "evaluate", "get", "load", "run", "show"]
