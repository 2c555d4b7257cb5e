"""What each ATen operation means, by its name; whatever is absent is refused."""

from k3.verify.exact.rules.table import RULES as RULES

__all__ = ["RULES"]
