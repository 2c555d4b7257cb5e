"""Check a module written outside k3 against the equation, without a tolerance.

    python examples/check_a_port.py

The first port takes the sigmoid of the capped gate, which no bf16 test sees; the report
names the line. The second is right.
"""

import torch
from torch import nn

from k3.spec import ops, situ
from k3.verify import exact


class Port(nn.Module):
    """Somebody's feed-forward: gate and up fused and transposed, SiTU by hand."""

    def __init__(self, right: bool, width: int = 7, hidden: int = 5) -> None:
        super().__init__()
        self.right = right
        self.gate_up = nn.Parameter(torch.randn(width, 2 * hidden))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = (x @ self.gate_up).chunk(2, -1)
        capped = 4 * torch.tanh(gate / 4)
        opened = torch.sigmoid(gate if self.right else capped)
        return self.down(opened * capped * 25 * torch.tanh(up / 25))


def equation(weights, x):
    """Eq. 12 row by row, on the port's own weights."""
    gate, up = weights["gate_up"].T[:5], weights["gate_up"].T[5:]
    rows = [situ.expert(gate, up, weights["down.weight"], x[i]) for i in range(len(x))]
    return ops.stack(rows)


for right in (False, True):
    print(exact.equal(Port(right), equation, {"x": torch.randn(2, 7)}), end="\n\n")
