"""Which layers stand on which stage, and which depth blocks cross to it."""

from dataclasses import dataclass

from k3.config import TextConfig
from k3.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Chunk:
    """Layers start .. stop, run without a break on one rank.

    `held` depth blocks lie on the rank before it runs: of these `received` came with
    the running sum, the others were kept from the rank's chunk before. `made` blocks
    are completed here. `sent` of all of them go on to the next chunk's rank.
    """

    number: int
    start: int
    stop: int
    held: int
    received: int
    made: int
    sent: int
    first: bool
    last: bool


def chunks(config: TextConfig, stages: int, virtual: int = 1) -> tuple[Chunk, ...]:
    """Split the layers over stages * virtual chunks; chunk i stands on i % stages.

    A rank keeps the blocks it has had, so that only new ones are sent (section of the
    article on infrastructure). Earlier chunks take the layers that are left over: the
    last one has the head.
    """
    layers, count = config.num_hidden_layers, stages * virtual
    if virtual < 1 or count > layers:
        raise ConfigError(
            f"stages * virtual chunks must be at most num_hidden_layers: got {stages} "
            f"* {virtual} for {layers}"
        )
    most, more = divmod(layers, count)
    ends = [most * (i + 1) + min(more, i + 1) for i in range(count)]
    after = [-(-end // config.attn_res_block_size) for end in ends]
    made = []
    for i, stop in enumerate(ends):
        start, held = (ends[i - 1], after[i - 1]) if i else (0, 0)
        kept = after[i - stages] if i >= stages else 0
        known = after[i + 1 - stages] if i + 1 >= stages else 0
        last = i == count - 1
        chunk = Chunk(
            number=i,
            start=start,
            stop=stop,
            held=held,
            received=held - kept,
            made=after[i] - held,
            sent=0 if last else after[i] - known,
            first=i == 0,
            last=last,
        )
        made.append(chunk)
    return tuple(made)
