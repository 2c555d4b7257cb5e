"""Where what runs is held against what it should be."""

from k3.verify.compare import compare as compare
from k3.verify.report import Entry as Entry
from k3.verify.report import Report as Report

__all__ = ["Entry", "Report", "compare"]
