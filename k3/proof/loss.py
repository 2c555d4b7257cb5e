"""x."""

from k3.proof.theorem import Theorems

THEOREMS: Theorems = {}
