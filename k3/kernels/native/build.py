"""Compile the kernels: one shared library for each instruction level.

    python k3/kernels/native/build.py

`pip install` runs this through hatch_build.py, `make setup` directly. A library's
name holds the digest of the sources it was made of, so an older one is never loaded;
objects are kept, and a source that has not changed is not compiled again. Standard
library only: pip runs this where neither torch nor k3 is installed.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
LIB = HERE / "lib"
COMPILERS = ("g++", "clang++", "c++")
FLAGS = (
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall"),
    # A product and a sum become one instruction; nothing else is reordered.
    *("-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"),
)
LAYOUT = "-Wl,-z,max-page-size=0x200000,-z,noseparate-code"
"""Code that begins where a large page does: code.cpp moves it into one."""

AVX2 = ("-mavx2", "-mfma")
AVX512 = (*AVX2, "-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl")
X86 = {
    # For processors of before 2013 alone: a third of its time to compile is saved.
    "portable": ("-O2",),
    "avx2": AVX2,
    "avx512": (*AVX512, "-mprefer-vector-width=512"),
    "avx512bf16": (*AVX512, "-mprefer-vector-width=512", "-mavx512bf16"),
}
ONLY_BF16 = "__AVX512BF16__"
"""A source that does not name this is the same in the last two levels."""


class BuildError(Exception):
    """Why there are no native kernels, in one line; `details` is what was printed."""

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.details = details


def levels() -> dict[str, tuple[str, ...]]:
    """The levels of this kind of processor, lowest first, with their flags."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return X86 if x86 else {"portable": ()}


def sources() -> list[Path]:
    """Every C++ file, in a stable order."""
    return sorted(HERE.glob("*.cpp"))


def headers() -> list[Path]:
    """Every header, in a stable order."""
    return sorted(HERE.glob("*.h"))


def digest(files: list[Path]) -> str:
    """12 hex digits of the names and contents of files, and of this one."""
    found = hashlib.sha256()
    for path in (*files, Path(__file__)):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def library(level: str) -> Path:
    """Where the library of a level is, if it was built from these sources."""
    return LIB / f"k3-{level}-{digest([*sources(), *headers()])}.so"


def compiler() -> str:
    """The C++ compiler: $CXX, or the first known one on the path."""
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else COMPILERS:
        found = shutil.which(name)
        if found:
            return found
    looked = wanted or ", ".join(COMPILERS)
    raise BuildError(f"no C++ compiler was found ({looked})")


def build() -> list[Path]:
    """Make what is missing and return the libraries of all levels."""
    made = [library(level) for level in levels()]
    if all(path.exists() for path in made):
        return made
    cxx = compiler()
    objects = LIB / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    with _alone(), ThreadPoolExecutor(os.cpu_count()) as pool:
        wanted = {level: list(_objects(level)) for level in levels()}
        jobs = {obj: job for found in wanted.values() for obj, *job in found}
        missing = {obj: job for obj, job in jobs.items() if not obj.exists()}
        list(pool.map(lambda item: _compile(cxx, item), missing.items()))
        for level, path in zip(levels(), made, strict=True):
            parts = [str(obj) for obj, *_ in wanted[level]]
            _run([cxx, "-shared", "-pthread", *_layout(), *parts], path)
    for path in (*LIB.glob("*.so"), *objects.glob("*.o")):
        if path not in jobs and path not in made:
            path.unlink(missing_ok=True)
    return made


def _objects(level: str) -> Iterator[tuple[Path, Path, tuple[str, ...]]]:
    """(object, source, flags) of each source at a level."""
    for source in sources():
        shared = level == "avx512bf16" and ONLY_BF16 not in source.read_text()
        name = "avx512" if shared else level
        made = f"{source.stem}-{name}-{digest([source, *headers()])}.o"
        yield LIB / "objects" / made, source, levels()[name]


def _layout() -> tuple[str, ...]:
    """What a linker of Linux is told; others know no such words."""
    return (LAYOUT,) if platform.system() == "Linux" else ()


def _compile(cxx: str, job: tuple[Path, list]) -> None:
    obj, (source, flags) = job
    _run([cxx, *FLAGS, *flags, "-c", str(source)], obj)


def _run(command: list[str], made: Path) -> None:
    """Run a compiler so that its file is there whole or not at all."""
    part = made.with_suffix(f".{os.getpid()}.part")
    done = subprocess.run([*command, "-o", part], capture_output=True, text=True)
    if done.returncode:
        part.unlink(missing_ok=True)
        name = Path(command[0]).name
        raise BuildError(f"{name} could not make {made.name}", done.stderr)
    part.replace(made)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process build at a time."""
    try:
        import fcntl
    except ImportError as error:
        raise BuildError(f"this is not built on {platform.system()}") from error
    with open(LIB / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Build, and say in one line what came of it; 1 where a compiler failed."""
    try:
        made = build()
    except BuildError as error:
        print(f"k3: native kernels are not built: {error}; K3 runs on PyTorch alone")
        print(error.details, end="", file=sys.stderr)
        return 1 if error.details else 0
    print(f"k3: native kernels: {', '.join(levels())} in {made[0].parent}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
