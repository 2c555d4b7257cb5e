"""`k3 compare`: a checkpoint, a function or a server against what it should be."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from k3.cli import loading, options, output
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.verify import Report

CHECK_FAILED = 1
TOKENS = 16
PROMPTS = ("Return True if", "The with statement", "A list is")
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def compare(
    files: options.ModelAndGolden,
    *,
    tolerance: options.Tolerance = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    seed: options.DrawSeed = 0,
    exact: options.Exact = False,
    signature: options.Signature = "k3",
    prompts: options.Prompts = None,
    max_tokens: options.MaxTokens = TOKENS,
    json: options.Json = False,
) -> int:
    """Hold a model, a function or a server against what is right; exit 1 if it differs.

    \b
    k3 compare tests/golden/tiny_release tests/golden/tiny_release/golden.npz
    k3 compare - tests/golden/text14.npz --dtype float64
    k3 compare kda.recurrent mine:recurrent --dtype bfloat16 --exact
    k3 compare tiny http://localhost:8000 -p "Return True if"
    """
    loading.check(dtype, device, experts)
    given = Given(tolerance, dtype, device, experts, json)
    what = files[-1]
    if what.startswith(("http://", "https://")):
        refuse(
            "a server", {"--seed": seed, "--exact": exact, "--as": signature != "k3"}
        )
        return server(files, given, prompts or PROMPTS, max_tokens)
    asked: dict[str, object] = {"--prompt": prompts}
    asked["--max-tokens"] = max_tokens != TOKENS
    if FUNCTION.fullmatch(what) and not Path(what).exists():
        refuse("a function", asked)
        return function(files, given, seed=seed, exact=exact, signature=signature)
    asked |= {"--seed": seed, "--exact": exact, "--as": signature != "k3"}
    refuse("golden numbers", asked)
    return golden_numbers(files, given)


@dataclass(frozen=True, slots=True)
class Given:
    """The options that several forms read."""

    tolerance: float | None
    dtype: str
    device: str
    experts: str
    json: bool

    def load(self, name: str) -> loading.Loaded:
        """The model of a name."""
        path = loading.find(name)
        return loading.load(
            path, dtype=self.dtype, device=self.device, experts=self.experts
        )

    def shown(self, found: "Shown") -> int:
        """Print a report; the exit code."""
        if self.json:
            output.json_value(found.to_dict())
        else:
            print(found)
        return 0 if found.ok else CHECK_FAILED


class Shown(Protocol):
    """What a comparison returns."""

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ...


def refuse(form: str, asked: Mapping[str, object]) -> None:
    """Refuse options that this form of the command does not read."""
    wrong = [name for name, value in asked.items() if value]
    if wrong:
        raise RequestError(
            f"comparing with {form} reads no {', '.join(wrong)}: leave it out"
        )


def golden_numbers(files: list[str], given: Given) -> int:
    """A checkpoint against a file of numbers."""
    model_name, golden_name = names(files)
    path = loading.find(model_name) if model_name else None
    from k3.verify import compare as run
    from k3.verify.compare import seeded_model
    from k3.verify.golden import Golden

    golden = Golden.load(golden_name)
    if path is None:
        where = loading.pick_device(given.device)
        chosen = loading.pick_dtype(given.dtype, where)
        model = seeded_model(golden, dtype=chosen, device=where)
    else:
        model = given.load(model_name).model
    found = run(model, golden, tolerance=given.tolerance)
    if given.json:
        output.json_value(found.to_dict())
    else:
        print_report(found)
    return 0 if found.ok else CHECK_FAILED


def function(
    files: list[str], given: Given, *, seed: int, exact: bool, signature: str
) -> int:
    """Somebody's function against an operator."""
    if len(files) != 2:
        raise RequestError(
            f"a function is compared as OP module:function: got {shlex.join(files)}; "
            "k3 vectors list names the operators"
        )
    from k3.verify.adapters import adapted
    from k3.verify.operators import check, find

    operator = find(files[0])
    theirs = adapted(check.load(files[1]), operator.name, signature)
    found = check.check(
        theirs,
        operator,
        dtype=loading.pick_dtype(given.dtype, "cpu"),
        seed=seed,
        exact=exact,
        tolerance=given.tolerance,
    )
    return given.shown(found)


def server(
    files: list[str], given: Given, prompts: Sequence[str], max_tokens: int
) -> int:
    """A server against a checkpoint that is run here."""
    if len(files) != 2:
        raise RequestError(
            f"a server is compared as MODEL URL: got {shlex.join(files)}; name the "
            "checkpoint that it serves"
        )
    loaded = given.load(files[0])
    from k3.verify.server import TOLERANCE, compare_server

    bound = TOLERANCE if given.tolerance is None else given.tolerance
    found = compare_server(
        loaded.model,
        loaded.needed_tokenizer(),
        files[1],
        prompts,
        max_tokens=max_tokens,
        tolerance=bound,
    )
    return given.shown(found)


def names(files: list[str]) -> tuple[str, str]:
    """(MODEL or nothing, GOLDEN); anything else is refused with what to write."""
    if len(files) > 2:
        raise RequestError(f"compare takes [MODEL] GOLDEN.npz: got {len(files)} names")
    *models, golden = files
    if len(files) == 2 and models[0].endswith(".npz") and not golden.endswith(".npz"):
        raise RequestError(
            f"the golden file comes last: got {shlex.join(files)}; write k3 compare "
            f"{shlex.join(files[::-1])}"
        )
    if Path(golden).is_dir() or golden == "tiny":
        beside = sorted(Path(golden).glob("*.npz"))
        file = str(beside[0]) if beside else "GOLDEN.npz"
        what = "" if beside else ", a file of numbers that this very model must give"
        raise RequestError(
            f"compare needs a file of numbers: got only the folder {golden}; add it: "
            f"k3 compare {shlex.join([golden, file])}{what}"
        )
    return ("" if models in ([], ["-"]) else models[0]), golden


def print_report(found: "Report") -> None:
    """A line for each tensor, what was left out, and the verdict."""
    for entry in found.entries:
        print(entry.line())
    if found.unknown:
        print(f"not compared: {', '.join(found.unknown)}")
    first = found.first
    print(f"first difference: {first.name}" if first else "all agree")
