"""`k3 plan`: memory and communication of training on N devices, by formula."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3.cli import loading, options, output, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.config import K3Config
    from k3.parallel.budget import Setup
    from k3.parallel.suggest import Choice

AXES = ("data", "pipeline", "expert", "context")
NUMBERS = ("micros", "virtual", "zero")
KEYS = (*AXES, "tokens", *NUMBERS, "policy", "optimizer", "balanced")
UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
UNITS |= {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
DOES_NOT_FIT = 1

FORMULA = "every figure is a formula over the config's sizes; the fullest stage's rank"
MEASURED = (
    "on small models: parameters and bytes sent by context ranks exact, activations "
    "within 3 % (tests/parallel); times nowhere"
)


def plan(
    model: options.ModelOrConfig = "released",
    *,
    devices: Annotated[
        int | None, typer.Option(metavar="N", help="How many; the product of the axes.")
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Of one device: 80GiB, 141GB.")
    ] = "80GiB",
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help=f"Fix one value; may be repeated. Keys: {', '.join(KEYS)}.",
        ),
    ] = None,
    json: options.Json = False,
) -> int:
    """Bytes held and sent by one rank; axes that are not set are chosen to fit.

    \b
    k3 plan --devices 2048
    k3 plan released --set pipeline=16 --set expert=32 --set context=4 --set policy=keep
    k3 plan tiny --devices 4 --memory 1GiB --json
    """
    given = settings.parse(values or [])
    settings.refuse_unknown(given, KEYS)
    most = parse_size(memory)
    config, setup = config_of(model), setup_of(given)
    count = setup.mesh.ranks if devices is None else devices
    if count < 1:
        raise RequestError(f"--devices must be at least 1: got {count}")
    fixed = {name for name in AXES if name in given}
    choice = chosen(config, setup, count, most, fixed)
    if json:
        output.json_value(to_dict(model, choice, most))
    else:
        print("\n".join(lines(model, choice, most)))
    return 0 if choice.budget.total_bytes <= most else DOES_NOT_FIT


def chosen(
    config: "K3Config", setup: "Setup", count: int, most: int, fixed: set[str]
) -> "Choice":
    """The setup as given where all devices are used by it, else the best that fits."""
    from k3.parallel.budget import budget
    from k3.parallel.suggest import Choice, suggest

    if setup.mesh.ranks == count and (fixed or count == 1):
        return Choice(setup, budget(config, setup))
    return suggest(config, count, most, setup, fixed)


def config_of(model: str) -> "K3Config":
    """The config of a folder, a config.json or a name."""
    from pathlib import Path

    from k3 import recipes
    from k3.checkpoint.locate import locate
    from k3.config import K3Config

    if model in loading.CONFIGS and not Path(model).exists():
        made: K3Config = getattr(recipes, model)()
        return made
    named = Path(model).name == "config.json"
    return K3Config.load(Path(model) if named else locate(model))


def setup_of(given: dict[str, Any]) -> "Setup":
    """The setup of --set, with every number read."""
    from k3.parallel.budget import Setup
    from k3.parallel.mesh import Mesh

    values = dict(given)
    if "tokens" in values:
        values["tokens"] = settings.tokens("--set tokens")(values["tokens"])
    for name in (*AXES, *NUMBERS):
        if name in values and type(values[name]) is not int:
            raise RequestError(
                f"--set {name} must be a whole number: got {values[name]!r:.80}"
            )
    if type(values.get("balanced", True)) is not bool:
        raise RequestError(
            f"--set balanced must be true or false: got {values['balanced']!r:.80}"
        )
    axes = {name: values.pop(name) for name in AXES if name in values}
    return Setup(mesh=Mesh(**axes), **values)


def parse_size(text: str) -> int:
    """Bytes of a size such as 80GiB or 141GB."""
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)", text.strip())
    if not found or found[2] not in UNITS or float(found[1]) == 0:
        raise RequestError(
            f"--memory must be a size such as 80GiB or 141GB: got {text!r:.80}"
        )
    return int(float(found[1]) * UNITS[found[2]])


def to_dict(model: str, choice: "Choice", most: int) -> dict[str, Any]:
    """What --json prints."""
    import dataclasses

    budget, setup = choice.budget, choice.setup
    return {
        "model": model,
        "devices": setup.mesh.ranks,
        "setup": dataclasses.asdict(setup),
        "fits": budget.total_bytes <= most,
        "memory_bytes": budget.memory,
        "total_bytes": budget.total_bytes,
        "device_bytes": most,
        "host_bytes": budget.host_bytes,
        "sent_bytes": budget.sent,
        "bubble": budget.bubble,
        "tokens_per_step": tokens_per_step(setup),
        "formula": FORMULA,
        "measured": MEASURED,
    }


def tokens_per_step(setup: "Setup") -> int:
    """Of all ranks together."""
    return setup.mesh.rows * setup.micros * setup.tokens


def lines(model: str, choice: "Choice", most: int) -> Iterator[str]:
    """What is printed: the mesh, memory, bytes sent, and what the figures are."""
    setup, budget = choice.setup, choice.budget
    verdict = "fits" if budget.total_bytes <= most else "does not fit"
    yield f"plan        {model} on {setup.mesh.ranks:,} devices: {setup.mesh}"
    yield (
        f"step        {tokens_per_step(setup):,} tokens: {setup.micros} rows of "
        f"{setup.tokens:,} a rank; policy {setup.policy}, ZeRO-{setup.zero}, "
        f"{setup.optimizer}"
    )
    yield f"memory      {gib(budget.total_bytes)} of {gib(most)}: {verdict}"
    for name, nbytes in budget.memory.items():
        yield f"  {name:<18}{gib(nbytes):>12}"
    if budget.host_bytes:
        yield f"  {'on the host':<18}{gib(budget.host_bytes):>12}"
    yield f"sent        {gib(sum(budget.sent.values()))} a rank and step"
    for name, nbytes in budget.sent.items():
        yield f"  {name:<18}{gib(nbytes):>12}"
    yield f"bubble      {100 * budget.bubble:.1f} % of the busy time"
    yield f"formula     {FORMULA}"
    yield f"measured    {MEASURED}"


def gib(nbytes: int) -> str:
    """Bytes in GiB, or where they are few in MiB or bytes."""
    for unit in ("GiB", "MiB"):
        if nbytes >= UNITS[unit] / 100:
            return f"{nbytes / UNITS[unit]:,.2f} {unit}"
    return f"{nbytes:,} B"
