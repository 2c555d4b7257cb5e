"""What each ATen operation does to balls, by its name."""

from k3.verify.enclose.rules.table import RULES as RULES

__all__ = ["RULES"]
