"""`k3 serve --replicas N`, and what it would do: `--simulate`."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from k3.cli import output

SIMULATED_REPLICAS = 4
# What is the router's own, or goes to the replicas another way.
_OWN = ("model", "host", "port", "replicas", "simulate", "json", "draft", "api_key")

Replicas = Annotated[
    int,
    typer.Option(
        help="Engine processes behind a router; 0 is one server without a router.",
        min=0,
    ),
]
Simulate = Annotated[
    bool,
    typer.Option(
        "--simulate",
        help="Print waiting times of such a fleet under mixed traffic; loads no model.",
    ),
]


def takes(asked: Mapping[str, Any]) -> bool:
    """Whether the verb asks for a fleet; it has run then."""
    if asked["simulate"]:
        simulate(asked["replicas"] or SIMULATED_REPLICAS, as_json=asked["json"])
    elif asked["replicas"]:
        serve(asked)
    return bool(asked["simulate"] or asked["replicas"])


def serve(asked: Mapping[str, Any]) -> None:
    """Run replicas with the verb's own options behind a router."""
    from k3.serve import replicas

    keys = tuple(asked["api_key"] or ())
    if keys:
        # Not as an argument: everyone on the machine can read those.
        os.environ["K3_API_KEY"] = " ".join(keys)
    host, port = asked["host"], asked["port"] or replicas.free_port()
    url = f"http://{host}:{port}"
    output.note(f"k3: router at {url}/v1, {asked['replicas']} replicas are loading")
    if asked["json"]:
        output.json_line({"url": url, "replicas": asked["replicas"]})
    replicas.serve(
        arguments(asked),
        asked["replicas"],
        host=host,
        port=port,
        stop_seconds=asked["drain_seconds"],
        api_keys=keys,
    )


def arguments(asked: Mapping[str, Any]) -> list[str]:
    """The verb's options as a replica's command line has them."""
    found = [str(asked["model"])]
    for name, value in asked.items():
        if name in _OWN or value is None or value == "":
            continue
        flag = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            found.append(flag if value else flag.replace("--", "--no-", 1))
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            found += [flag, str(each)]
    return found


def simulate(replicas: int, *, as_json: bool) -> None:
    """Print what requests of each class wait, under each policy."""
    from k3 import recipes
    from k3.serve.simulate import Plan, describe, simulate, summary

    failures = tuple(each for each in Plan().failures if each[0] < replicas)
    plan = Plan(replicas=replicas, failures=failures)
    results = simulate(plan, recipes.released())
    if as_json:
        found = {name: summary(done, plan.kinds) for name, done in results.items()}
        output.json_value({"plan": describe(plan), "policies": found})
        return
    from rich.console import Console

    from k3.serve.waiting import picture

    Console().print(picture(results, plan.kinds))
