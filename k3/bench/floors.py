"""What one token costs at least: the bytes of its weights, and its operations."""

from k3.bench import limits
from k3.config import sizes
from k3.model import Model
from k3.model.moe import MoE

READ_ROUNDS, PRODUCT_ROUNDS = 4, 4
MAX_READ = 2**30
"""A longer read is no faster; weights of many gigabytes need no second copy."""


def weight_bytes(model: Model) -> int:
    """Bytes of weights that one decoded token reads, as this model holds them.

    Everything but the embedding table, the experts that idle and what only training
    and pictures use.
    """
    text = model.language_model
    total = sum(x.nbytes for name, x in text.state_dict().items() if not _idle(name))
    for layer in text.model.layers[: text.model.num_layers]:
        moe = getattr(layer, "block_sparse_moe", None)
        if isinstance(moe, MoE):
            held = moe.experts.stored().values()
            total += sum(x[0].nbytes for x in held) * moe.k
    return total


def held_bytes(model: Model) -> int:
    """Bytes of all weights, as this model holds them."""
    return sum(x.nbytes for x in model.state_dict().values())


def operations(model: Model) -> int:
    """Two for each active weight and token; attention's own are not counted."""
    return 2 * sizes.parameters(model.config).active


class Floors:
    """The best read and products of all rounds."""

    def __init__(self, model: Model, clock: str = "wall") -> None:
        self.clock = clock
        self.num_bytes = weight_bytes(model)
        self.operations = operations(model)
        self.read_bytes = min(self.num_bytes, MAX_READ)
        self.read = limits.reading(self.read_bytes)
        self.products, self.counted = limits.products(model.dtype)
        self.bytes_per_s = self.flops_per_s = 0.0

    def measure(self) -> None:
        """Look again whether the machine can do better."""
        read = limits.best(self.read, READ_ROUNDS, self.clock)
        self.bytes_per_s = max(self.bytes_per_s, self.read_bytes / read)
        made = limits.best(self.products, PRODUCT_ROUNDS, self.clock)
        self.flops_per_s = max(self.flops_per_s, self.counted / made)

    def prompt(self, tokens: int) -> float:
        """Seconds for the operations of so many tokens."""
        return tokens * self.operations / self.flops_per_s

    def step(self, batch: int) -> float:
        """Seconds to read one token's weights, or for the operations of all rows."""
        return max(self.num_bytes / self.bytes_per_s, self.prompt(batch))


def _idle(name: str) -> bool:
    routed = ".experts." in name and ".shared" not in name
    return "embed_tokens" in name or routed
