"""How a local sandbox is started: bubblewrap's options, and whether it can run here."""

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib import resources
from pathlib import Path

from k3.envs.sandbox import Limits
from k3.errors import RequestError

_PYTHON = os.path.realpath(sys.executable)
USER = 1000
"""Who the sandboxed processes are; nobody of that number owns anything here."""


@cache
def check() -> str:
    """Return bubblewrap's path after one trial run.

    Raises: RequestError where it is missing or user namespaces are: nothing is ever
    run bare instead.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise RequestError(
            "a local sandbox needs bubblewrap: got no bwrap on the path; install the "
            "system's package bubblewrap, or use the E2B backend"
        )
    tried = subprocess.run(
        [found, *_walls(Limits()), "true"], capture_output=True, check=False
    )
    if tried.returncode:
        raise RequestError(
            "a local sandbox needs user namespaces: got "
            f"{tried.stderr.decode(errors='replace').strip()[:200]!r} from bwrap; "
            "allow unprivileged user namespaces, or use the E2B backend"
        )
    return found


def command(limits: Limits) -> list[str]:
    """Return the command that starts the program inside."""
    return [check(), *_walls(limits), _PYTHON, "-I", "-S", "-c", _program()]


def _program() -> str:
    """The program inside with what it imports, as one text."""
    folder = resources.files("k3.envs")
    part = folder.joinpath("inside_files.py").read_text()
    made = "import sys, types\nmodule = types.ModuleType('inside_files')\n"
    made += f"exec({part!r}, module.__dict__)\nsys.modules['inside_files'] = module\n"
    return made + folder.joinpath("inside.py").read_text()


def _walls(limits: Limits) -> list[str]:
    """No network, no capabilities, a read-only system, and a work folder in memory."""
    options = ["--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    # The program inside is the first process: what runs there cannot end it.
    options += ["--as-pid-1"]
    options += ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    options += ["--uid", str(USER), "--gid", str(USER), "--hostname", "sandbox"]
    options += [*system(), "--proc", "/proc", "--dev", "/dev"]
    for folder in ("/work", "/tmp", "/dev/shm"):
        options += ["--size", str(limits.disk_bytes), "--tmpfs", folder]
    # The devices stay; what holds them is memory without a size.
    options += ["--remount-ro", "/dev"]
    if sys.base_prefix != "/usr":
        options += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    options += ["--remount-ro", "/", "--chdir", "/work"]
    return [*options, "--setenv", "PATH", "/usr/bin:/bin", "--"]


def system() -> list[str]:
    """The options that show the system's programs, read-only."""
    options = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64"):
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    return options
