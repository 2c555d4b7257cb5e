"""Building the kernels: with a compiler, without one, and after a change."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from k3.kernels.native import build, library

ROOT = Path(__file__).parents[3]


def copied(tmp_path):
    """The native folder without what was built, to build in."""
    here = tmp_path / "native"
    shutil.copytree(build.HERE, here, ignore=shutil.ignore_patterns("lib", "__pyc*"))
    return here


def built(here, **changes):
    """The outcome of running build.py there in this environment with changes."""
    environment = {**os.environ, **changes}
    script = [sys.executable, str(here / "build.py")]
    return subprocess.run(script, capture_output=True, text=True, env=environment)


def shared(name):
    """Where the compiler finds a library."""
    command = [build.compiler(), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def test_where_a_compiler_is_the_kernels_are():
    if any(shutil.which(name) for name in build.COMPILERS):
        assert library.absent() is None, "run make setup"
    else:
        assert "compiler" in library.absent()


def test_without_a_compiler_one_line_says_so(tmp_path):
    done = built(copied(tmp_path), PATH=str(tmp_path))
    assert done.returncode == 0
    assert done.stdout == (
        "k3: native kernels are not built: no C++ compiler was found (g++, clang++, "
        "c++); K3 runs on PyTorch alone\n"
    )
    assert done.stderr == ""


def test_a_compiler_that_fails_is_named_with_what_it_said(tmp_path):
    fails = tmp_path / "fails"
    fails.write_text("#!/bin/sh\necho no such flag >&2\nexit 1\n")
    fails.chmod(0o755)
    done = built(copied(tmp_path), CXX=str(fails))
    assert done.returncode == 1
    assert "fails could not make" in done.stdout
    assert done.stderr == "no such flag\n"
    assert not list(tmp_path.glob("native/lib/*.so"))


def test_a_changed_source_makes_a_library_of_another_name(tmp_path, monkeypatch):
    here = copied(tmp_path)
    before = build.library("portable").name
    monkeypatch.setattr(build, "HERE", here)
    assert build.library("portable").name == before
    (here / "norm.cpp").write_text("// changed\n")
    assert build.library("portable").name != before


def test_what_is_missing_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "LIB", tmp_path)
    library.absent.cache_clear()
    try:
        assert "have not been built; run python" in library.absent()
        library.absent.cache_clear()
        (tmp_path / "k3-portable-0.so").touch()
        assert "older than their sources" in library.absent()
    finally:
        library.absent.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [True, False])
def test_the_wheel_builds(tmp_path, compiler):
    """With a compiler it holds the libraries and names its platform; else neither."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns(".git", ".venv", "tests", "lib", "runs")
    shutil.copytree(ROOT, tree, ignore=ignored)
    environment = dict(os.environ) if compiler else {**os.environ, "PATH": "/nowhere"}
    script = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    done = subprocess.run(
        [*script, str(tmp_path)], cwd=tree, env=environment, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    libraries = [name for name in names if name.endswith(".so")]
    assert len(libraries) == (len(build.levels()) if compiler else 0)
    assert wheel.name.endswith("-any.whl") != compiler
    assert "k3/kernels/native/kda.cpp" in names


@pytest.mark.slow
def test_address_sanitizer_finds_nothing(tmp_path):
    """The native tests of this processor's best level with every access watched."""
    level = library.level()
    # Whoever throws must be known before its first exception: Python is no C++.
    runtimes = [shared("libasan.so"), shared("libstdc++.so.6")]
    watched = tmp_path / "watched.so"
    flags = [f.replace("-O3", "-O1") for f in (*build.FLAGS, *build.levels()[level])]
    command = [build.compiler(), *flags, "-g", "-fsanitize=address", "-shared"]
    subprocess.run([*command, *map(str, build.sources()), "-o", watched], check=True)
    script = (
        "import sys, pytest\n"
        "from k3.kernels.native import build, library\n"
        "library.level()\n"
        f"build.library = lambda level: __import__('pathlib').Path({str(watched)!r})\n"
        "sys.exit(pytest.main(['tests/kernels/native', '-q', '-m', 'not slow',\n"
        "    '-o', 'addopts=--import-mode=importlib', '-p', 'no:cacheprovider',\n"
        "    '-W', 'ignore:Module already imported',\n"
        "    '-k', 'not level and not build and not fork']))"
    )
    environment = os.environ | {
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": f"detect_leaks=0:log_path={tmp_path}/report",
        "MALLOC_PERTURB_": "165",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    # It ends the process where it finds something; wrong values are not its matter.
    for report in tmp_path.glob("report*"):
        raise AssertionError(report.read_text()[:3000])
    assert " passed" in done.stdout, done.stderr[-3000:]
