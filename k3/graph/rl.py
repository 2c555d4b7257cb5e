"""The distillation reward as a graph: Eq. 15."""

from k3.graph import primitives as p
from k3.graph.compare import larger, smaller
from k3.graph.term import Term


def reward(teacher: Term, student: Term, limit: Term) -> Term:
    """Eq. 15: clip(log(p_teacher / p_student), +-R)."""
    return larger(smaller(p.log(teacher / student), limit), -limit)
