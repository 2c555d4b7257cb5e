"""Does the program that runs compute the equation? Exactly, without a tolerance."""

from k3.verify.exact.equal import equal as equal
from k3.verify.exact.gradient import gradient as gradient
from k3.verify.exact.report import Difference as Difference
from k3.verify.exact.report import Place as Place
from k3.verify.exact.report import Report as Report

__all__ = ["Difference", "Place", "Report", "equal", "gradient"]
