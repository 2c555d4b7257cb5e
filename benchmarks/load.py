"""Load: streaming clients against replicas, random cancels, one replica killed.

    python benchmarks/load.py [--model tiny] [--clients 200] [--seconds 180]
        [--replicas 2] [--cancel 0.15] [--no-kill] [--serve=--flag ...]

Starts `k3 serve --replicas N` and asks every prompt once, alone: greedy or seeded, so
that its answer is known. Then clients stream random prompts, each cut at a random
length. An answer that is not the beginning of its own reference is counted as mixed
up, one that ends early or with an error as lost. Half-way a replica is killed with
SIGKILL. At the end everything must be idle again. Exits 1 if anything was lost, mixed
up or left behind, or a process that lived through it grew by more than 100 MB.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil

SUBJECTS = ("rivers", "numbers", "letters", "engines", "gardens", "winters", "tables")
KINDS = ("short", "useful", "old", "strange", "new", "simple", "odd")
LEAST_TOKENS, MOST_TOKENS = 4, 40
# The rest of a cut character; a longer answer has the character itself.
CUT = "\ufffd"
ROUTER = ("resumed", "restarted", "failures", "busy", "refused")
PATIENCE_S, GROWTH_MB = 5.0, 100.0


@dataclass
class Case:
    """A request whose answer is known: its path, its body, and the answer."""

    path: str
    body: dict[str, Any]
    text: str = ""


@dataclass
class Tally:
    """What all clients saw."""

    counts: Counter = field(default_factory=Counter)
    first_s: list[float] = field(default_factory=list)
    between_s: list[float] = field(default_factory=list)
    pace_s: list[float] = field(default_factory=list)
    tokens: int = 0
    wrong: list[str] = field(default_factory=list)


def cases(model: str) -> list[Case]:
    """49 requests: chat and completions, greedy and seeded."""
    found = []
    for at, (kind, subject) in enumerate((k, s) for k in KINDS for s in SUBJECTS):
        words = f"{at}: write {kind} words about {subject}."
        how = {"temperature": 0.0} if at % 2 else {"temperature": 1.0, "seed": at}
        body = {"model": model, "stream": True, "ignore_eos": True, **how}
        body["stream_options"] = {"include_usage": True}
        if at % 4 < 2:
            found.append(Case("/v1/completions", body | {"prompt": words * 3}))
        else:
            message = {"role": "user", "content": words}
            found.append(Case("/v1/chat/completions", body | {"messages": [message]}))
    return found


async def chunks(client: httpx.AsyncClient, case: Case, most: int) -> Any:
    """Yield the chunks of one stream. Raises: RuntimeError where it breaks."""
    body = case.body | {"max_tokens": most}
    async with client.stream("POST", case.path, json=body) as answer:
        if answer.status_code != 200:
            told = (await answer.aread()).decode()
            raise RuntimeError(f"status {answer.status_code}: {told[:200]}")
        async for line in answer.aiter_lines():
            if line == "data: [DONE]":
                return
            if line.startswith("data: "):
                chunk = json.loads(line[6:])
                if "error" in chunk:
                    raise RuntimeError(f"error event: {chunk['error']['message']}")
                yield chunk
    raise RuntimeError("the stream ended without [DONE]")


def text_of(chunk: dict[str, Any]) -> tuple[str, str]:
    """The text of a chunk, and its finish reason."""
    if not chunk["choices"]:
        return "", ""
    (choice,) = chunk["choices"]
    delta = choice.get("delta") or {}
    text = choice.get("text") or delta.get("reasoning_content") or ""
    return text + (delta.get("content") or ""), choice.get("finish_reason") or ""


async def ask(
    client: httpx.AsyncClient, case: Case, most: int, tally: Tally, *, stop_at: int = -1
) -> None:
    """One answer, checked; `stop_at` leaves after so many chunks."""
    text, finish, said, began = "", "", 0, time.perf_counter()
    last = began
    async for chunk in chunks(client, case, most):
        if stop_at == 0:
            tally.counts["cancelled"] += 1
            return
        stop_at -= 1
        more, end = text_of(chunk)
        finish = end or finish
        said = (chunk.get("usage") or {}).get("completion_tokens", said)
        if more:
            now = time.perf_counter()
            (tally.between_s if text else tally.first_s).append(now - last)
            last, text = now, text + more
    tally.tokens += said
    if finish != "length" or said != most:
        raise RuntimeError(f"{said} tokens of {most}, ended by {finish!r}")
    tally.counts["answered"] += 1
    if not case.text.startswith(text.rstrip(CUT)):
        tally.wrong.append(f"{case.body}: {text!r}, not {case.text[: len(text)]!r}")


async def client(url: str, all_cases: list[Case], tally: Tally, args: Any) -> None:
    """Ask until the time is over; now and then leave early."""
    draw = random.Random(tally.counts["clients"])
    tally.counts["clients"] += 1
    async with httpx.AsyncClient(base_url=url, timeout=600) as http:
        while time.monotonic() < args.until:
            case, most = draw.choice(all_cases), draw.randint(LEAST_TOKENS, MOST_TOKENS)
            leaves = draw.random() < args.cancel
            try:
                if leaves and draw.random() < 0.5:
                    # Gone while it is queued, in its prompt, or anywhere else.
                    async with asyncio.timeout(draw.random() * PATIENCE_S):
                        await ask(http, case, most, Tally())
                    tally.counts["too late to cancel"] += 1
                else:
                    stop = draw.randrange(most) if leaves else -1
                    await ask(http, case, most, tally, stop_at=stop)
            except TimeoutError:
                tally.counts["cancelled"] += 1
            except (RuntimeError, httpx.HTTPError) as error:
                tally.counts["lost"] += 1
                tally.wrong.append(f"lost: {type(error).__name__} {error}")


def gauges(url: str) -> Counter:
    """Sums over the replicas of what the engines hold."""
    found: Counter = Counter()
    for line in httpx.get(f"{url}/metrics", timeout=60).text.splitlines():
        if line.startswith("k3:"):
            name, _, value = line.rpartition(" ")
            found[name.partition("{")[0].removeprefix("k3:")] += float(value)
    return found


async def watch(
    args: Any, router: psutil.Process, seen: dict[int, list[float]]
) -> None:
    """Note every process's memory each few seconds; kill a replica half-way."""
    half, killed = time.monotonic() + args.seconds / 2, args.no_kill
    while time.monotonic() < args.until:
        replicas = router.children()
        for process in (router, *replicas):
            with contextlib.suppress(psutil.NoSuchProcess):
                megabytes = process.memory_info().rss / 1e6
                seen.setdefault(process.pid, []).append(megabytes)
        if not killed and time.monotonic() > half:
            killed = True
            replicas[0].kill()
            print(f"killed replica process {replicas[0].pid}", flush=True)
        await asyncio.sleep(args.seconds / 36)


def ready(url: str, replicas: int, seconds: float = 300.0) -> None:
    """Wait for every replica. Raises: TimeoutError."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            told = httpx.get(f"{url}/health", timeout=60).json()
            if list(told["replicas"].values()).count("ready") == replicas:
                return
        time.sleep(0.2)
    raise TimeoutError(f"{replicas} replicas are not ready after {seconds:.0f} s")


async def load(
    url: str, router: psutil.Process, args: Any
) -> tuple[Tally, dict, float]:
    """References, then the storm; the tally, memory by process, and its seconds."""
    known = cases(args.name)
    async with httpx.AsyncClient(base_url=url, timeout=600) as http:
        for case in known:
            async for chunk in chunks(http, case, MOST_TOKENS):
                case.text += text_of(chunk)[0]
    tally, seen, began = Tally(), {}, time.monotonic()
    args.until = began + args.seconds
    storm = [client(url, known, tally, args) for _ in range(args.clients)]
    await asyncio.gather(watch(args, router, seen), *storm)
    return tally, seen, time.monotonic() - began


def p50_p99_ms(values: list[float]) -> list[int]:
    """The median and the 99th percentile of seconds, in ms."""
    cuts = statistics.quantiles(values, n=100)
    return [round(1000 * cuts[49]), round(1000 * cuts[98])]


def idle(url: str, seconds: float = 120.0) -> Counter:
    """The engines' gauges once nothing runs, or when the time is over."""
    until = time.monotonic() + seconds
    while True:
        found = gauges(url)
        held = found["num_requests_running"] + found["num_requests_waiting"]
        if not held or time.monotonic() > until:
            return found
        time.sleep(0.2)


def report(tally: Tally, seen: dict, seconds: float, left: Counter) -> dict[str, Any]:
    """The figures. Growth is from the sample at a third of a process's life on."""
    memory = {
        str(pid): [round(each[0]), round(each[len(each) // 3]), round(each[-1])]
        for pid, each in seen.items()
    }
    lived = [
        each for each in seen.values() if len(each) >= max(map(len, seen.values()))
    ]
    held = ("num_requests_running", "num_requests_waiting", "router_in_flight")
    return {
        **{k: tally.counts[k] for k in ("answered", "cancelled", "lost")},
        "mixed up": len(tally.wrong) - tally.counts["lost"],
        "tokens a second": round(tally.tokens / seconds, 1),
        "first token p50, p99 ms": p50_p99_ms(tally.first_s),
        "between tokens p50, p99 ms": p50_p99_ms(tally.between_s),
        "router": {name: left[f"router_{name}_total"] for name in ROUTER},
        "held at the end": {name: left[name] for name in held},
        "MB at start, at a third, at the end": memory,
        "growth MB": round(max(each[-1] - each[len(each) // 3] for each in lived), 1),
    }


def serve(args: Any) -> tuple[subprocess.Popen, str]:
    """Start the fleet on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "k3", "serve", args.model, "--port", str(port)]
    command += ["--replicas", str(args.replicas), "--served-model-name", args.name]
    command += ["--block-size", "64", "--prefix-match-unit", "16"]
    command += ["--set", "memory_bytes=33554432", *args.serve]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment), f"http://127.0.0.1:{port}"


def arguments(given: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--name", default="load")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--cancel", type=float, default=0.15)
    parser.add_argument("--no-kill", action="store_true")
    parser.add_argument("--serve", action="append", default=[], help="for k3 serve")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> dict[str, Any]:
    args = arguments(given)
    process, url = serve(args)
    try:
        ready(url, args.replicas)
        tally, seen, seconds = asyncio.run(load(url, psutil.Process(process.pid), args))
        ready(url, args.replicas)
        found = report(tally, seen, seconds, idle(url))
    finally:
        process.terminate()
        process.wait(120)
    for line in tally.wrong[:10]:
        print(line)
    print(json.dumps(found, indent=1))
    left = any(found["held at the end"].values())
    if tally.wrong or left or found["growth MB"] > GROWTH_MB:
        raise SystemExit(1)
    return found


if __name__ == "__main__":
    main()
