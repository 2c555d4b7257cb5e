"""Claims about a checkpoint: run on its shapes and weights, and what proves them."""

from k3.verify.refine.check import Check as Check
from k3.verify.refine.check import Outcome as Outcome
from k3.verify.refine.check import Setting as Setting
from k3.verify.refine.claims import CLAIMS as CLAIMS
from k3.verify.refine.claims import run as run

__all__ = ["CLAIMS", "Check", "Outcome", "Setting", "run"]
