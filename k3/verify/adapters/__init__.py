"""Other projects' signatures of K3's operators, with every layout converted by name."""

from k3.verify.adapters.table import adapted as adapted

__all__ = ["adapted"]
