"""How a wrong variant is made: what takes the place of a node of some name."""

from collections.abc import Callable, Mapping

from k3.graph.term import Term, build

Find = Callable[[str], Term]
Change = Callable[[Term, Find], Term]
Changes = Mapping[str, Change]


def operand(i: int) -> Change:
    """The node's i-th operand in place of the node."""
    return lambda node, find: node.args[i]


def other(label: str) -> Change:
    """Another node of the step in place of the node."""
    return lambda node, find: find(label)


def reverse(node: Term, find: Find) -> Term:
    """The node with its operands in the other order."""
    return build(node.op, node.args[::-1], **node.attrs)
