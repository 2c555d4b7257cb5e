"""Theorems about K3, one file per concept; nothing is proved at import."""

from k3.proof.prove import Record as Record
from k3.proof.prove import article as article
from k3.proof.prove import prove as prove
from k3.proof.prove import prove_all as prove_all
from k3.proof.prove import theorems as theorems
from k3.proof.theorem import Theorem as Theorem

__all__ = ["Record", "Theorem", "article", "prove", "prove_all", "theorems"]
