"""The site over HTTP, alone and beside a model, and Python behind the figures."""

import pytest
from starlette.testclient import TestClient

from k3.reader import serve, widgets


@pytest.fixture(scope="module")
def client():
    return TestClient(serve.app())


def test_pages_by_their_names(client):
    for path in ("/", "/index.html", "/kda", "/kda.html"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        assert "<html data-served" in answer.text
    assert client.get("/kda").text == client.get("/kda.html").text


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/static/reader.css", "text/css"),
        ("/static/reader.js", "text/javascript"),
        ("/static/katex/fonts/KaTeX_Main-Regular.woff2", "font/woff2"),
        ("/static/favicon.svg", "image/svg+xml"),
        ("/static/data/search.json", "application/json"),
    ],
)
def test_files_have_their_types(client, path, kind):
    assert client.get(path).headers["content-type"].startswith(kind)


@pytest.mark.parametrize("path", ["/none", "/static/math.json", "/../pyproject.toml"])
def test_what_is_not_there_is_404(client, path):
    assert client.get(path).status_code == 404
    assert client.post(path).status_code == 404


def test_eval_runs_the_equations(client):
    name = "situ"
    state = widgets.get(name).default
    answer = client.post("/api/eval", json={"widget": name, "state": state})
    assert answer.json() == widgets.evaluate(name, state)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "takes"),
        (b"[]", 400, "takes"),
        (b'{"widget": "none", "state": {}}', 404, "no widget none"),
        (b'{"widget": ["situ"], "state": {}}', 404, "no widget"),
        (b'{"widget": "situ", "state": []}', 404, "no widget"),
        (b'{"widget": "situ", "state": {"none": 1}}', 400, "no control none"),
        (b" " * 100_001, 413, "at most"),
    ],
)
def test_eval_refuses_in_words(client, body, status, words):
    answer = client.post("/api/eval", content=body)
    assert answer.status_code == status
    assert words in answer.json()["error"]
