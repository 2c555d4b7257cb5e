"""Equality of graphs for all sizes: entries as sums of products over variables.

`same` compares two graphs, `equals_coordinates` a graph with a text in coordinates;
`coordinates` has the texts of the packed steps.
"""

from k3.graph.symbolic.decide import Verdict as Verdict
from k3.graph.symbolic.decide import equals_coordinates as equals_coordinates
from k3.graph.symbolic.decide import same as same
from k3.graph.symbolic.whole import coordinates as coordinates

__all__ = ["Verdict", "coordinates", "equals_coordinates", "same"]
