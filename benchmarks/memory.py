"""Resident memory that loading a checkpoint adds, in each expert mode.

python benchmarks/memory.py DIR [--modes packed mmap dequantized] [--json]

Each mode runs in its own process: resident bytes after loading minus resident bytes
of the same process once k3 and torch are imported; peak likewise. "used" is after one
token went through the model: libraries of arithmetic have come in, and in mmap mode
the pages of the experts it used.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

MODES = ("packed", "mmap", "dequantized")
CHILD = """
import json, sys
import k3, torch

torch.set_num_threads(1)


def status(key):
    with open("/proc/self/status") as lines:
        return next(1024 * int(x.split()[1]) for x in lines if x.startswith(key))


def reset_peak():
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")


reset_peak()
before = status("VmRSS")
model = k3.load(sys.argv[1], experts=sys.argv[2])
loaded, peak = status("VmRSS"), status("VmHWM")
with torch.no_grad():
    model(torch.tensor([[1]]))
print(json.dumps({
    "added": loaded - before, "peak": peak - before, "used": status("VmRSS") - before
}))
"""


def measure(directory: str, mode: str) -> dict[str, int]:
    """Return bytes added after loading, at the peak, and after one token."""
    command = [sys.executable, "-c", CHILD, directory, mode]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", default="tiny")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    shards = Path(options.directory).glob("*.safetensors")
    size = sum(path.stat().st_size for path in shards)
    rows = {mode: measure(options.directory, mode) for mode in options.modes}
    if options.json:
        print(json.dumps({"file_bytes": size, **rows}))
        return
    print(f"{options.directory}: {size / 1e6:.1f} MB of safetensors")
    print(f"{'experts':12s} {'added':>10s} {'ratio':>6s} {'peak':>10s} {'used':>10s}")
    for mode, row in rows.items():
        added, peak, used = (row[key] / 1e6 for key in ("added", "peak", "used"))
        ratio = row["added"] / size
        print(f"{mode:12s} {added:7.1f} MB {ratio:6.2f} {peak:7.1f} MB {used:7.1f} MB")


if __name__ == "__main__":
    main()
