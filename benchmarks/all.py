"""The speed of every concept and of a whole model: rows for RESULTS.md.

    python benchmarks/all.py [--threads 1 2] [--shapes B9] [--print]

Writes a random checkpoint of each shape to a temporary folder, runs `k3 bench` on it in
fp32 and bf16 and the benchmarks of single concepts, for each number of threads, and
appends the figures with date, commit, machine and command to benchmarks/RESULTS.md;
with --print to standard output alone. About 5 minutes with B9 on two idle cores.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import checkpoints

HERE = Path(__file__).parent
CONCEPTS = ("kda.py --tokens 2048 --repeats 3 --threads {t}", "native.py --threads {t}")
UNITS = {"tok/s": (1.0, "tok/s"), "s": (1e3, "ms"), "bytes": (1e-6, "MB")}


def run(words: list[str]) -> str:
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def heading() -> list[str]:
    now = datetime.datetime.now(datetime.UTC).date()
    commit = run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]).strip()
    cpu = "a processor"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
    load = os.getloadavg()[0]
    return [
        f"## {now}, {commit}: make bench",
        "",
        f"{os.cpu_count()} cores {cpu}, load {load:.1f} before the run.",
        "",
    ]


def figures(folder: str, dtype: str, threads: int) -> dict[str, Any]:
    words = ["bench", folder, "--dtype", dtype, "--threads", str(threads), "--json"]
    return json.loads(run([sys.executable, "-m", "k3", *words]))


def table(shape: str, folder: str, threads: list[int]) -> list[str]:
    made = [
        f"`k3 bench {shape} --dtype D --threads N`",
        "",
        "| threads | dtype | figure | median | low to high | floor | share |",
        "|---|---|---|---|---|---|---|",
    ]
    for count in threads:
        for dtype in ("float32", "bfloat16"):
            found = figures(folder, dtype, count)
            made += [row(count, dtype, figure) for figure in found["figures"]]
            limits = found["context"]
            read, product = limits["read_bytes_per_s"], limits["operations_per_s"]
            made.append(
                f"| {count} | {dtype} | limits | {read / 1e9:.1f} GB/s | | "
                f"{product / 1e9:.0f} GFLOP/s | {limits['kernels']} |"
            )
    return [*made, ""]


def row(threads: int, dtype: str, figure: dict[str, Any]) -> str:
    scale, unit = UNITS[figure["unit"]]
    median, low, high, floor = (
        f"{figure[key] * scale:,.1f}" for key in ("median", "low", "high", "floor")
    )
    return (
        f"| {threads} | {dtype} | {figure['name']} | {median} {unit} | {low} to {high} "
        f"| {floor} | {figure['share']:.2f} |"
    )


def concept(command: str) -> list[str]:
    name, *words = command.split()
    found = run([sys.executable, str(HERE / name), *words]).rstrip()
    return [f"`python benchmarks/{command}`", "", "```text", found, "```", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shapes", nargs="+", default=["B9"])
    parser.add_argument("--print", action="store_true")
    args = parser.parse_args()
    lines = heading()
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shapes:
            where = Path(folder) / shape
            checkpoints.write(shape, where)
            lines += table(shape, str(where), args.threads)
    for count in args.threads:
        for command in CONCEPTS:
            lines += concept(command.format(t=count))
    text = "\n".join(lines)
    print(text)
    if not args.print:
        with (HERE / "RESULTS.md").open("a") as results:
            results.write("\n" + text)


if __name__ == "__main__":
    main()
