"""Operators of K3 that other people's functions are held against."""

from k3.verify.operators.operator import Operator as Operator
from k3.verify.operators.table import OPERATORS as OPERATORS
from k3.verify.operators.table import find as find

__all__ = ["OPERATORS", "Operator", "find"]
