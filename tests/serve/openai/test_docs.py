"""docs/serving.md: its bodies are accepted, its program and lists are the code's."""

import json
import re
from pathlib import Path

from k3.serve.openai import fields
from k3.serve.openai.options import ServerOptions

TEXT = (Path(__file__).parents[3] / "docs" / "serving.md").read_text()


def test_report_100_bodies_are_accepted(client, worker):
    found = re.findall(r"```json (/\S+)\n(.*?)```", TEXT, re.S)
    assert found
    for path, body in found:
        sent = json.loads(body) | {"model": "toy"}
        assert client.post(path, sent).status_code == 200


def test_report_100_the_program_compiles_and_names_what_is_there(client):
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    compile(program, "serving.md", "exec")
    message = client.chat()["choices"][0]["message"]
    assert {"content", "reasoning_content", "reasoning"} <= set(message)


def test_report_100_what_is_ignored_is_listed():
    _, _, rest = TEXT.partition("Ignored on purpose")
    listed = re.findall(r"`(\w+)`", rest.split("Refused unless")[0])
    assert tuple(listed) == fields.IGNORED


def test_report_100_limits_are_those_of_the_code(config):
    options = ServerOptions(config=config)
    assert f"body over {options.max_body_bytes >> 20} MiB" in TEXT
    assert f"image over {options.max_image_bytes >> 20} MiB" in TEXT
    assert f"more than {options.max_images} images" in TEXT


def test_report_100_paths_are_served(client):
    rows = re.findall(r"^\| (GET|POST) (/[^|]*) \|", TEXT, re.M)
    for method, paths in rows:
        for path in paths.split(", "):
            status = client.request(method, path, content=b"{}").status_code
            assert status not in (404, 405), path
