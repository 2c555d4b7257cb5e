"""Scale-out: what a model needs to run on many ranks, as functions model to model."""

from k3.parallel.mesh import Mesh as Mesh

__all__ = ["Mesh"]
