"""Inputs, intermediate values and outputs of operators and models, as files."""

from k3.verify.vectors.model import export_model as export_model
from k3.verify.vectors.operator import export_operator as export_operator

__all__ = ["export_model", "export_operator"]
