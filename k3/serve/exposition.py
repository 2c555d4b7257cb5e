"""Prometheus text of several replicas as one: each sample with its replica's name."""

import re
from collections.abc import Mapping

from k3.serve.pool import Pool

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?( .+)")


def labelled(texts: Mapping[str, str]) -> str:
    """The families of all texts, each explained once, samples labelled `replica`."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for name, text in texts.items():
        family = ""
        for line in text.splitlines():
            if line.startswith("# "):
                family = line.split(" ", 3)[2]
                known = heads.setdefault(family, [])
                kind = line.split(" ", 2)[1]
                if not any(other.split(" ", 2)[1] == kind for other in known):
                    known.append(line)
            elif found := _SAMPLE.fullmatch(line):
                owner = family if found[1].startswith(family) else found[1]
                labels = ",".join(filter(None, [f'replica="{name}"', found[2]]))
                samples.setdefault(owner, []).append(
                    f"{found[1]}{{{labels}}}{found[3]}"
                )
    blocks = [[*heads.get(family, []), *samples[family]] for family in samples]
    return "".join(f"{line}\n" for block in blocks for line in block)


def router(pool: Pool) -> str:
    """The router's own: what went to each replica, and what went wrong."""
    lines = ["# TYPE k3:router_requests_total counter"]
    for replica in pool.replicas.values():
        label = f'{{replica="{replica.name}"}}'
        lines.append(f"k3:router_requests_total{label} {replica.requests}")
    lines.append("# TYPE k3:router_in_flight gauge")
    for replica in pool.replicas.values():
        label = f'{{replica="{replica.name}"}}'
        lines.append(f"k3:router_in_flight{label} {replica.in_flight}")
    for name in ("failures", "restarted", "resumed", "busy", "refused"):
        lines.append(f"# TYPE k3:router_{name}_total counter")
        lines.append(f"k3:router_{name}_total {pool.counts[name]}")
    return "".join(f"{line}\n" for line in lines)
