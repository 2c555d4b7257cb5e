"""What training a config on N devices takes: memory and bytes sent, by formula.

Figures are of one rank, the fullest stage, one step. No torch: sizes come from the
config alone. docs/scale.md says which of them are measured on the tiny model.
"""

from dataclasses import dataclass, field

from k3.config import K3Config, TextConfig, sizes
from k3.errors import ConfigError
from k3.parallel import activation_sizes, layout, schedule, traffic
from k3.parallel.layout import Chunk
from k3.parallel.mesh import Mesh

POLICIES = ("keep", "recompute", "eight", "offload")
OPTIMIZERS = ("muon", "adamw")
FP32 = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """How a step is run. `tokens` is the length of a row, `micros` rows a rank."""

    mesh: Mesh = field(default_factory=Mesh)
    tokens: int = 8192
    micros: int = 8
    virtual: int = 1
    zero: int = 3
    policy: str = "recompute"
    optimizer: str = "muon"
    balanced: bool = True
    itemsize: int = 2

    def __post_init__(self) -> None:
        """Refuse what means nothing, all of it at once."""
        wrong = [
            f"{name} must be at least 1: got {getattr(self, name)}"
            for name in ("tokens", "micros", "virtual")
            if getattr(self, name) < 1
        ]
        choices = {"zero": (2, 3), "policy": POLICIES, "optimizer": OPTIMIZERS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                listed = ", ".join(map(str, known))
                wrong.append(
                    f"{name} must be one of {listed}: got {getattr(self, name)!r}"
                )
        if wrong:
            raise ConfigError("; ".join(wrong))

    @property
    def local(self) -> int:
        """Tokens of a row on one context rank, the longest share."""
        return -(-self.tokens // self.mesh.context)


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of a stage: whole on every trunk rank before sharding, and experts.

    `largest` is what FSDP gathers at once, `adamw` what has two moments under Muon.
    """

    trunk: int
    experts: int
    largest: int
    adamw: int


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes of one rank by what they are for, and bytes it sends in one step."""

    memory: dict[str, int]
    host_bytes: int
    sent: dict[str, int]
    bubble: float

    @property
    def total_bytes(self) -> int:
        """All that lies on the device at its fullest."""
        return sum(self.memory.values())


def budget(config: K3Config, setup: Setup) -> Budget:
    """Return the fullest stage's budget. Raises: ConfigError for a mesh that fails."""
    text, mesh = config.text, setup.mesh
    mesh.check(text, mesh.ranks)
    if setup.tokens < mesh.context:
        raise ConfigError(
            f"context must be at most tokens: got {mesh.context} for {setup.tokens}"
        )
    chunks = layout.chunks(text, mesh.pipeline, setup.virtual)
    # Refuses what schedules refuse, such as micro-batches that do not come in groups.
    schedule.actions("1f1b", mesh.pipeline, setup.micros, setup.virtual)
    found = [
        _stage(config, setup, chunks[stage :: mesh.pipeline], stage)
        for stage in range(mesh.pipeline)
    ]
    return max(found, key=lambda b: b.total_bytes)


def _stage(
    config: K3Config, setup: Setup, chunks: tuple[Chunk, ...], stage: int
) -> Budget:
    weights = stage_weights(config, setup, chunks)
    kept, host = activations(config.text, setup, chunks, stage)
    memory = {**_states(weights, setup), "activations": kept}
    memory["buffers"] = buffers(config.text, setup)
    return Budget(
        memory=memory,
        host_bytes=host,
        sent=sent_bytes(config.text, setup, weights, chunks),
        bubble=schedule.bubble(setup.mesh.pipeline, setup.micros, setup.virtual),
    )


def stage_weights(config: K3Config, setup: Setup, chunks: tuple[Chunk, ...]) -> Weights:
    """Count the parameters that one rank of a stage stands for."""
    text, mesh = config.text, setup.mesh
    trunk = experts = adamw = largest = 0
    local = text.num_experts // mesh.expert * sizes.expert(text)
    for chunk in chunks:
        for i in range(chunk.start, chunk.stop):
            mixer, rest, held = layer_weights(text, i)
            trunk += mixer + rest + 6 * text.hidden_size
            experts += local if held else 0
            adamw += 6 * text.hidden_size
            largest = max(largest, mixer, rest + (local if held else 0))
    table = text.vocab_size * text.hidden_size
    if chunks[0].first:
        seen = sum(sizes.vision(config.vision).values()) if config.vision else 0
        trunk, adamw, largest = trunk + table + seen, adamw + table, max(largest, table)
    if chunks[-1].last:
        extra = table + 3 * text.hidden_size
        trunk, adamw, largest = trunk + extra, adamw + extra, max(largest, table)
        if text.num_nextn_predict_layers:
            trunk += sizes.mtp_layer(text) - text.num_experts * sizes.expert(text)
            experts += local
    return Weights(trunk, experts, largest, adamw)


def layer_weights(text: TextConfig, layer: int) -> tuple[int, int, bool]:
    """(mixer, feed-forward without routed experts, whether there are some)."""
    mixer = sizes.mla_layer(text) if text.is_mla(layer) else sizes.kda_layer(text)
    if not text.is_moe(layer):
        return mixer, sizes.dense_layer(text), False
    router = (text.hidden_size + 1) * text.num_experts
    shared = text.num_shared_experts * sizes.shared_expert(text)
    return mixer, router + sizes.latent_layer(text) + shared, True


def _states(weights: Weights, setup: Setup) -> dict[str, int]:
    """Weights, gradients and optimizer states under ZeRO, which are sharded."""
    mesh, b = setup.mesh, setup.itemsize
    own = -(-weights.trunk // mesh.trunk) + -(-weights.experts // mesh.replica)
    whole = weights.trunk + weights.experts
    split = mesh.trunk > 1
    # ZeRO-3 holds the unit that runs and the next one; ZeRO-2 all of the stage.
    gathered = 2 * weights.largest if setup.zero == 3 else whole
    moments = own + (own if setup.optimizer == "adamw" else 0)
    if setup.optimizer == "muon":
        moments += -(-weights.adamw // mesh.trunk)
    return {
        "weights": own * b,
        "gathered weights": gathered * b if split else 0,
        "gradients": own * FP32,
        "gradient buffers": 2 * weights.largest * FP32 if split else 0,
        "master weights": own * FP32,
        "optimizer": moments * FP32,
    }


def activations(
    text: TextConfig, setup: Setup, chunks: tuple[Chunk, ...], stage: int
) -> tuple[int, int]:
    """(bytes on the device, on the host) of all micro-batches under way."""
    most = host = 0
    for chunk in chunks:
        here, away = chunk_activations(text, setup, chunk)
        most, host = max(most, here), max(host, away)
    under_way = in_flight(setup, stage)
    return under_way * most + running(text, setup, chunks), under_way * host


def in_flight(setup: Setup, stage: int) -> int:
    """Chunks of 1F1B whose backward pass is still to come, at most."""
    p, v = setup.mesh.pipeline, setup.virtual
    ahead = p - 1 - stage
    if v > 1:
        ahead = 2 * ahead + (v - 1) * p
    return min(ahead + 1, setup.micros * v)


def chunk_activations(text: TextConfig, setup: Setup, chunk: Chunk) -> tuple[int, int]:
    """(bytes on the device, on the host) that one forward pass of a chunk leaves."""
    t, b = setup.local, setup.itemsize
    layers = range(chunk.start, chunk.stop)
    units = [left for i in layers for left in activation_sizes.unit(text, i)]
    rest = activation_sizes.depth(text, chunk.start, chunk.stop)
    if chunk.last:
        rest += activation_sizes.head(text)
    inputs = len(units) * text.hidden_size * b * t
    whole = sum(u.bytes(b) for u in units) * t
    if setup.policy == "keep":
        return whole + rest.bytes(b) * t, 0
    if setup.policy == "recompute":
        return inputs + rest.bytes(b) * t, 0
    if setup.policy == "offload":
        return 0, whole + rest.bytes(b) * t
    scalars = sum(u.trunk + u.wide for u in [*units, rest]) * t
    return scalars + scalars // 32, 0


def running(text: TextConfig, setup: Setup, chunks: tuple[Chunk, ...]) -> int:
    """The unit whose backward pass runs: whole again, and with offload the next one."""
    if setup.policy == "keep":
        return 0
    largest = max(
        left.bytes(setup.itemsize)
        for chunk in chunks
        for i in range(chunk.start, chunk.stop)
        for left in activation_sizes.unit(text, i)
    )
    return largest * setup.local * (2 if setup.policy == "offload" else 1)


def buffers(text: TextConfig, setup: Setup) -> int:
    """Rows that expert ranks receive, in and out, and copies of experts they fetch."""
    R, b = setup.mesh.expert, setup.itemsize
    if R == 1:
        return 0
    row = text.routed_expert_hidden_size * b
    slots = setup.local * text.num_experts_per_token
    if not setup.balanced:
        return 2 * slots * R * row
    return 2 * slots * row + copies(text, R) * sizes.expert(text) * (b + FP32)


def copies(text: TextConfig, ranks: int) -> int:
    """MoonEP: experts that a rank fetches under the worst load, ceil(E (R-1) / R^2)."""
    return -(-text.num_experts * (ranks - 1) // ranks**2)


def sent_bytes(
    text: TextConfig, setup: Setup, weights: Weights, chunks: tuple[Chunk, ...]
) -> dict[str, int]:
    """Return what a rank of the stage sends in one step, by what it is for."""
    mesh, b, t = setup.mesh, setup.itemsize, setup.local
    layers = [i for c in chunks for i in range(c.start, c.stop)]
    sparse = sum(text.is_moe(i) for i in layers)
    again = 2 if setup.policy == "recompute" else 1
    there, back = traffic.context(text, layers, t, mesh.context, b)
    out = {
        "data": traffic.weights(
            (weights.trunk, mesh.trunk),
            (weights.experts, mesh.replica),
            setup.micros,
            setup.zero,
            b,
        ),
        "expert": 0,
        "context": setup.micros * (again * there + back),
        "pipeline": 0,
    }
    if mesh.expert > 1:
        rows = traffic.expert_rows(text, t, mesh.expert, b)
        counts = traffic.expert_counts(text, mesh.expert)
        moved = 0
        if setup.balanced:
            moved = traffic.expert_copies(text, copies(text, mesh.expert), b)
        each = (again + 1) * rows + again * counts + moved
        out["expert"] = setup.micros * sparse * each
    if mesh.pipeline > 1:
        out["pipeline"] = setup.micros * traffic.stages(text, chunks, t, b)
    return out
