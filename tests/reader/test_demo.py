"""`make demo` ends with the reader where somebody is there to read."""

import importlib.util
import threading
import urllib.request

import pytest

from k3.reader import source

SPEC = importlib.util.spec_from_file_location("demo", source.ROOT / "tools/demo.py")
demo = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(demo)


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {"TERM": "xterm"}, True),
        (True, {}, True),
        (True, {"CI": "1"}, False),
        (True, {"CI": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_only_on_a_terminal_and_never_in_ci(terminal, environ, wanted):
    assert demo.ends_with_reader(terminal, environ) is wanted


def test_without_the_serve_extra_the_pages_are_files(tmp_path):
    with demo.static(tmp_path) as pages:
        threading.Thread(target=pages.serve_forever).start()
        host, port = pages.server_address[:2]
        for path, kind in (("", "text/html"), ("static/reader.js", "javascript")):
            with urllib.request.urlopen(f"http://{host}:{port}/{path}") as answer:
                assert kind in answer.headers["content-type"]
        pages.shutdown()


@pytest.mark.parametrize("there", [True, False])
def test_the_reader_ends_at_ctrl_c(monkeypatch, capsys, there):
    """By `k3 read` where it can be served; else the address is said."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: there or None)
    monkeypatch.setattr(demo.subprocess, "run", interrupted)
    monkeypatch.setattr(demo.ThreadingHTTPServer, "serve_forever", interrupted)
    demo.reader()
    said = capsys.readouterr().out
    assert "last, the reader" in said
    assert ("http://127.0.0.1:" in said) is not there
