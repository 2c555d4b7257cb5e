"""`k3 env`: what is installed, and the command for each thing that is not."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from k3.cli import loading, output
from k3.cli.options import Json

REQUIREMENT = re.compile(r"([\w.-]+)[^;]*?(?:;.*extra == ['\"]([\w-]+)['\"])?$")


def env(*, json: Json = False) -> None:
    """Versions, threads, devices, and which extras are present.

    \b
    k3 env
    k3 env --json
    """
    known = installed()
    if json:
        output.json_value(known | running())
        return
    for name in ("k3", "python", "platform", "cores"):
        print(f"{name:12} {known[name]}")
    for name, version in known["packages"].items():
        print(f"{name:12} {version}")
    for name, extra in known["extras"].items():
        print(
            f"[{name}]".ljust(12), "present" if extra["present"] else extra["install"]
        )
    # torch takes seconds to import, and may be what is broken.
    sys.stdout.flush()
    found = running()
    print(f"{'threads':12} {found['threads']}")
    print(f"{'devices':12} {', '.join(found['devices'])}")
    for name in ("native", "code", "kernels", "float32", "cuda"):
        print(f"{name:12} {found[name]}")


def running() -> dict[str, Any]:
    """What only torch can say."""
    import torch

    from k3.kernels import choose

    cuda = (f"cuda:{i}" for i in range(torch.cuda.device_count()))
    found = {"threads": torch.get_num_threads(), "devices": ["cpu", *cuda]}
    held = loading.pick_weights("auto", torch.float32, "cpu")
    found["float32"] = f"weights {held} where nothing is trained"
    return found | choose.lines()


def installed() -> dict[str, Any]:
    """Versions and extras, from what the packages declare."""
    from k3 import __version__

    required = list(requirements())
    core = {name for name, extra, _ in required if extra is None}
    return {
        "k3": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in sorted(core)},
        "extras": extras(required),
    }


def requirements() -> Iterator[tuple[str, str | None, str]]:
    """(package, extra or None, requirement) as the installed package declares them."""
    for line in metadata.requires("k3") or []:
        found = REQUIREMENT.match(line)
        if found:
            yield found[1], found[2], line.split(";")[0].strip()


def extras(required: list[tuple[str, str | None, str]]) -> dict[str, dict[str, Any]]:
    """For each extra, what is missing and the command that installs it."""
    report: dict[str, dict[str, Any]] = {}
    for name, extra, requirement in required:
        if extra is None:
            continue
        entry = report.setdefault(extra, {"present": True, "missing": []})
        if version(name) == "missing":
            entry["present"] = False
            entry["missing"].append(requirement)
    for entry in report.values():
        if entry["missing"]:
            wanted = " ".join(f"'{need}'" for need in entry["missing"])
            entry["install"] = f"{sys.executable} -m pip install {wanted}"
    return report


def version(package: str) -> str:
    """The installed version, or `missing`."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"
