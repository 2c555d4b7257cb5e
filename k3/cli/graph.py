"""`k3 graph`: the packed steps as typed graphs, shown or run."""

from typing import Any

from k3.cli import options, output
from k3.errors import RequestError


def graph(
    name: options.Graph = "",
    *,
    dot: options.Dot = False,
    latex: options.Latex = False,
    run: options.Run = False,
    seed: options.DrawSeed = 0,
    json: options.Json = False,
) -> None:
    """List the packed steps, show one as a typed graph, or run it on random inputs.

    \b
    k3 graph
    k3 graph expert --latex
    k3 graph kda_layer --run --seed 3
    """
    if sum((dot, latex, run)) > 1 or (json and (dot or latex)):
        raise RequestError(
            "graph takes one of --dot, --latex, --run and --json; only --run goes "
            "with --json: got more; choose one"
        )
    if not name:
        if dot or latex or run:
            raise RequestError(
                "a form needs the NAME of a graph: got none; k3 graph lists them"
            )
        show_list(as_json=json)
    elif run:
        show_run(name, seed, as_json=json)
    else:
        from k3 import graph as graphs

        form = {"dot": dot, "latex": latex, "json": json}
        print(graphs.show(name, next((f for f, on in form.items() if on), "text")))


def show_list(*, as_json: bool) -> None:
    """Every packed step and what it is."""
    from k3 import graph as graphs

    says = {name: build().says for name, build in graphs.catalogue.items()}
    if as_json:
        output.json_value(says)
        return
    for name, what in says.items():
        print(f"{name:24} {what}")


def show_run(name: str, seed: int, *, as_json: bool) -> None:
    """Shapes of the random inputs, and the outputs."""
    from k3 import graph as graphs

    found = graphs.run(name, seed=seed)
    if as_json:
        output.json_value(found)
        return
    print(f"{name} with", " ".join(f"{n}={s}" for n, s in found["sizes"].items()))
    for title, array in found["inputs"].items():
        print(f"in   {title} {shape(array)}")
    for title, array in found["outputs"].items():
        print(f"out  {title} {shape(array)}")
        print(*(f"     {row}" for row in rows(array)), sep="\n")


def shape(array: Any) -> list[int]:
    """The shape of nested lists."""
    return [len(array), *shape(array[0])] if isinstance(array, list) and array else []


def rows(array: Any) -> list[str]:
    """Nested lists as one line for each innermost list."""
    if not isinstance(array, list):
        return [f"{array:.6g}"]
    if array and isinstance(array[0], list):
        return [row for part in array for row in rows(part)]
    return ["  ".join(f"{number:.6g}" for number in array)]
