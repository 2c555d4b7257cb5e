"""k3 serve: its flags and those of other servers, and a server from start to end."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import torch
from small import config

from k3.checkpoint import draft as folder
from k3.cli import drafting, foreign
from k3.config.draft import DraftConfig
from k3.errors import RequestError
from k3.model.draft import Draft


def test_flags_of_other_servers_are_taken_out_with_a_note():
    typed = (
        "tiny --trust-remote-code --tool-call-parser kimi_k3 --tp=1 --max_num_seqs 8 "
        "--gpu-memory-utilization 0.95 --port 1 --kv-cache-dtype auto"
    )
    found = foreign.take_out(typed.split())
    assert found.arguments == ["tiny", "--max-num-seqs", "8", "--port", "1"]
    assert len(found.notes) == 5
    assert "--trust-remote-code changes nothing: no code" in found.notes[0]


def test_other_names_of_our_own_options():
    found = foreign.take_out(
        ["--model-path", "dir", "--context-length=64", "--disable-radix-cache"]
    )
    want = ["dir", "--max-model-len", "64", "--no-enable-prefix-caching"]
    assert found.arguments == want
    assert not found.notes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--tp 8", "leave it out, or use --replicas N"),
        ("--kv-cache-dtype fp8", "only auto here"),
        ("--reasoning-parser deepseek", "only kimi_k3 here"),
        ("--speculative-algorithm DSPARK", "use --speculative-config"),
        ("--tool-call-parser --port 3", "needs a value"),
    ],
)
def test_what_cannot_be_honoured_is_an_error(k3, words, said):
    with pytest.raises(RequestError, match=said):
        foreign.take_out(words.split())
    found = k3("serve", *words.split())
    assert found.code == 2
    assert said in found.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--speculative-config", "[]"], "needs a JSON object"),
        (["--speculative-config", '{"tokens": 3}'], "has the keys method"),
        (["--speculative-config", '{"method": "dspark"}'], "are not served"),
        (["--set", "max_image=3"], "did you mean max_images"),
        (["--set", "max_images=x"], "a whole number"),
        (["--max-model-len", "x"], "a whole number of tokens"),
        (["--speculation", "3"], "No such option"),
        (["nowhere"], "no directory"),
    ],
)
def test_options_that_mean_nothing_are_refused(k3, arguments, said):
    found = k3("serve", *arguments)
    assert found.code == 2
    assert said in found.err


def test_a_model_without_a_tokenizer_is_refused(k3, golden):
    found = k3("serve", golden, "--port", 0)
    assert found.code == 2
    assert "serving needs a tokenizer" in found.err


def test_drafts_are_read():
    asked = {"speculative_config": '{"method": "ngram", "prompt_lookup_min": 2}'}
    found = drafting.read(asked)
    assert found["num_speculative_tokens"] == 4
    draft = drafting.load(found, {})
    assert (draft.least, draft.most) == (2, 4)
    assert drafting.read({"speculative_config": ""}) == {}


def test_a_trained_draft_is_read_with_its_tree(tmp_path):
    text = config(attn_res_block_size=1).text
    folder.save(Draft(DraftConfig(text=text), torch.float32), tmp_path)
    values = {"method": "eagle3", "model": str(tmp_path)}
    tree = values | {"speculative_token_tree": [[0], [1], [0, 0]]}
    found = drafting.read({"speculative_config": json.dumps(tree)})
    assert found["num_speculative_tokens"] == 2
    assert drafting.load(found, {}).tree.parents == (-1, -1, 0)
    plain = drafting.read({"speculative_config": json.dumps(values)})
    assert drafting.load(plain, {}).tree is None
    for wrong in (tree | {"num_speculative_tokens": 3}, tree | {"method": "ngram"}):
        if wrong["method"] == "ngram":
            del wrong["model"]
        with pytest.raises(RequestError, match="is the shape of what method eagle3"):
            drafting.read({"speculative_config": json.dumps(wrong)})
    with pytest.raises(RequestError, match="a token tree is a branching for each"):
        drafting.read(
            {"speculative_config": json.dumps(tree | {"speculative_token_tree": 3})}
        )


def test_a_server_answers_and_finishes_what_runs(checkpoint):
    """Loads, answers, is told to stop while a stream runs, sends all of it, ends 0."""
    command = [sys.executable, "-m", "k3", "serve", checkpoint, "--port", "0"]
    command += ["--json", "--block-size", "32", "--prefix-match-unit", "16"]
    command += ["--served-model-name", "toy", "--enable-auto-tool-choice"]
    speculative = '{"method": "ngram", "num_speculative_tokens": 2}'
    command += ["--speculative-config", speculative]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        ready = json.loads(process.stdout.readline())
        assert ready["models"] == ["toy"]
        body = {"prompt": "ab", "max_tokens": 100, "stream": True, "ignore_eos": True}
        request = urllib.request.Request(
            f"{ready['url']}/v1/completions", json.dumps(body).encode()
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            first = answer.readline()
            process.send_signal(signal.SIGTERM)
            rest = answer.read()
        assert first.startswith(b"data: ")
        assert rest.endswith(b"data: [DONE]\n\n")
        assert b'"finish_reason":"length"' in rest
        assert process.wait(120) == 0
        said = process.stderr.read()
    assert "--enable-auto-tool-choice changes nothing: tools are always on" in said
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{ready['url']}/health", timeout=5)


def test_a_port_that_is_taken_is_said(k3, checkpoint):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = k3("serve", checkpoint, "--port", port)
    assert found.code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in found.err
