"""Progress: a bar on a terminal, lines elsewhere, silence when quiet."""

import io

from k3.checkpoint import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(stream: io.StringIO, **options) -> str:
    with progress.shown("load", stream=stream, **options) as update:
        if update:
            for done in range(0, 2_000_001, 50_000):
                update(done, 2_000_000)
    return stream.getvalue()


def test_lines_each_tenth():
    lines = run(io.StringIO()).splitlines()
    assert len(lines) == 10
    assert lines[0] == "load: 0.2 of 2.0 MB"
    assert lines[-1] == "load: 2.0 of 2.0 MB"


def test_a_bar_on_a_terminal():
    text = run(Terminal())
    assert "load" in text
    assert "MB" in text
    assert "\x1b[" in text


def test_quiet_is_silent():
    assert run(io.StringIO(), quiet=True) == ""
    assert run(Terminal(), quiet=True) == ""


def test_nothing_to_do_is_done():
    stream = io.StringIO()
    with progress.shown("load", stream=stream) as update:
        update(0, 0)
    assert stream.getvalue() == "load: 0.0 of 0.0 MB\n"
