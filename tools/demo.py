"""`make demo`: the shipped model is checked, then it writes; the reader comes last.

    python tools/demo.py [MODEL]

Prints the same with and without a terminal; exit 1 where a check fails. On a terminal
it goes on to serve the reader's pages until Ctrl-C; never in CI.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import k3
from k3.checkpoint.inspect import inspect
from k3.checkpoint.locate import locate
from k3.errors import K3Error

if TYPE_CHECKING:
    from k3.data.tokenizer import Tokenizer
    from k3.model import Model

# At temperature 0.7 such a beginning reads better than the likeliest tokens do.
PROMPT = "Return True if"
TOLERANCE = 5e-5
NEXT = """\
next
  .venv/bin/k3 generate -p "The with statement" --temperature 0.7
  .venv/bin/k3 inspect released --tokens 1M
  .venv/bin/k3 compare tests/golden/tiny_release tests/golden/tiny_release/golden.npz
  .venv/bin/k3 read          the paper beside code, theorems, figures, in a browser
  .venv/bin/k3 --help        the other verbs; make test runs the tests"""


def config_verdict(path: Path) -> bool:
    """What the model is, from its headers."""
    report = inspect(path, name=path.name)
    print(f"k3 {k3.__version__}  {report.lines()[0]}")
    if report.parameters:
        print(f"    {report.parameters.total:,} parameters, MXFP4 experts, CPU")
    show(1, "config and tensors are K3's", report.ok)
    return report.ok


def streaming_verdict(model: "Model", ids: list[int]) -> bool:
    """Token by token and in pieces against the whole sequence."""
    from k3.verify.streaming import streaming

    found = [streaming(model, ids, piece) for piece in (1, 16, 23)]
    worst = max(max(each.logits, each.state) for each in found)
    detail = f"{len(ids)} tokens, logits and states: max |d| {worst:.1e}"
    show(2, "streamed = in chunks = whole", worst <= TOLERANCE, detail)
    return worst <= TOLERANCE


def completion(model: "Model", tokenizer: "Tokenizer") -> None:
    """A text that the model continues, shown as it comes."""
    from k3.model.generate import GenerateOptions, stream

    options = GenerateOptions(max_tokens=80, temperature=0.7, seed=1)
    print(f"[3/3] it writes, after {PROMPT!r}:\n")
    print(PROMPT, end="", flush=True)
    started, count = time.perf_counter(), 0
    for token in stream(model, tokenizer.encode(PROMPT), options, tokenizer=tokenizer):
        print(token.text, end="", flush=True)
        count += 1
    seconds = time.perf_counter() - started
    print(f"\n\n    {count} tokens, {count / seconds:.0f} tok/s with the prompt\n")


def ends_with_reader(terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether somebody is there to read."""
    return terminal and not environ.get("CI") and environ.get("TERM") != "dumb"


def reader() -> None:
    """The pages until Ctrl-C: by `k3 read`, or as files where serving is not there."""
    print("\nlast, the reader: every claim beside its code, theorem and figure")
    served = all(map(importlib.util.find_spec, ("starlette", "uvicorn")))
    try:
        if served:
            subprocess.run([sys.executable, "-m", "k3", "read"], check=False)
        else:
            with tempfile.TemporaryDirectory() as folder, static(Path(folder)) as pages:
                host, port = pages.server_address[:2]
                print(f"k3: the reader is at http://{host!s}:{port}/; Ctrl-C ends it")
                pages.serve_forever()
    except KeyboardInterrupt:
        print()


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a line for each."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def static(folder: Path) -> ThreadingHTTPServer:
    """The site in a folder, on a free port of this machine."""
    from k3.reader import site

    site.build(folder)
    handler = partial(Quiet, directory=str(folder))
    return ThreadingHTTPServer(("127.0.0.1", 0), handler)


def show(step: int, what: str, ok: bool, detail: str = "") -> None:
    """One line of the check list."""
    print(f"[{step}/3] {what:32} {'ok' if ok else 'FAILED':8} {detail}".rstrip())


def main() -> int:
    """Run the checks, then the completion; 1 where a check failed."""
    import torch

    path = locate(sys.argv[1] if len(sys.argv) > 1 else "tiny")
    good = config_verdict(path)
    model = k3.load(path, dtype=torch.float32)
    tokenizer = k3.tokenizer(path)
    sample = "The assert statement is a way to insert checks into a program. " * 3
    good = streaming_verdict(model, tokenizer.encode(sample)[:64]) and good
    completion(model, tokenizer)
    print(NEXT)
    if good and ends_with_reader(sys.stdout.isatty(), os.environ):
        reader()
    return 0 if good else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except K3Error as error:
        sys.exit(f"demo: {error}")
