"""quantization_config: how the routed experts are packed (compressed-tensors)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from k3.config.section import Section


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantizationConfig(Section):
    """MXFP4 weights: 4-bit elements, one power-of-two scale per 32 inputs."""

    BOOKKEEPING: ClassVar[frozenset[str]] = frozenset(
        {"quantization_status", "global_compression_ratio", "version"}
    )

    quant_method: str
    format: str
    config_groups: Mapping[str, Any] = field(hash=False)
    # Read but not obeyed: what is packed is seen from `.weight_packed` in the files.
    ignore: tuple[str, ...] = ()
    kv_cache_scheme: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def weights(self) -> Mapping[str, Any]:
        """The weight scheme of the only group."""
        group = next(iter(self.config_groups.values()), None)
        scheme = group.get("weights") if isinstance(group, Mapping) else None
        return scheme if isinstance(scheme, Mapping) else {}
