"""k3 generate: text, ids, pictures, batches, JSON."""

import dataclasses
import io
import shlex

import pytest

from k3.cli import prompts, request
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.model.generate import GenerateOptions

PIL = pytest.importorskip("PIL.Image")


def test_text_is_continued_and_repeats_with_the_seed(k3, checkpoint):
    first = k3("generate", checkpoint, "-p", "abc", "--max-tokens", 8, "--seed", 3)
    again = k3("generate", checkpoint, "-p", "abc", "--max-tokens", 8, "--seed", 3)
    assert first.code == 0
    assert first.out == again.out
    assert first.err == ""


def test_the_stream_prints_what_the_whole_does(k3, checkpoint):
    common = ["generate", checkpoint, "-p", "abc", "--max-tokens", 8, "--ignore-eos"]
    assert k3(*common).out == k3(*common, "--no-stream").out


def test_json_holds_the_request_and_the_answer(k3, checkpoint):
    arguments = ["-p", "abc", "--max-tokens", 4, "--logprobs", 2, "--ignore-eos"]
    value = k3("generate", checkpoint, *arguments, "--json").json
    (done,) = value["completions"]
    assert done["prompt_ids"] == [97, 98, 99]
    assert len(done["ids"]) == len(done["logprobs"]) == 4
    assert [len(each) for each in done["alternatives"]] == [2, 2, 2, 2]
    decode = Tokenizer.load(checkpoint).decode
    for each in [each for row in done["alternatives"] for each in row]:
        assert each["text"] == decode([each["id"]])
    assert done["tokens"] == [decode([i]) for i in done["ids"]]
    assert done["finish"] == "length"
    assert value["tokens_per_second"] > 0


def test_ids_work_without_a_tokenizer(k3, golden):
    found = k3("generate", golden, "--ids", "1,2,3", "--max-tokens", 5)
    assert found.code == 0
    assert len(found.out.split()) <= 5
    assert all(part.isdigit() for part in found.out.split())
    whole = k3("generate", golden, "--ids", "1 2 3", "--max-tokens", 5, "--json").json
    assert whole["completions"][0]["text"] is None
    assert found.out.split() == [str(i) for i in whole["completions"][0]["ids"]]


def test_several_prompts_are_several_completions(k3, checkpoint):
    arguments = ["-p", "a", "-p", "long one", "--max-tokens", 3, "--temperature", 0]
    together = k3("generate", checkpoint, *arguments, "--json").json["completions"]
    assert [each["prompt"] for each in together] == ["a", "long one"]
    for each in together:
        alone = k3(
            "generate", checkpoint, "-p", each["prompt"], *arguments[4:], "--json"
        )
        assert alone.json["completions"][0]["ids"] == each["ids"]
    assert "== long one" in k3("generate", checkpoint, *arguments).out


def test_log_probabilities_are_printed_a_line_a_token(k3, checkpoint):
    arguments = ["-p", "abc", "--max-tokens", 3, "--logprobs", 2, "--ignore-eos"]
    found = k3("generate", checkpoint, *arguments)
    rows = found.out.splitlines()[-3:]
    assert all(float(row.split()[1]) < 0 for row in rows)
    heading = found.out.splitlines()[-4]
    assert heading.split() == ["id", "logprob", "text", "alternatives"]
    assert all(row[heading.index("text")] == '"' for row in rows)


def test_nothing_may_be_asked_for(k3, checkpoint):
    found = k3("generate", checkpoint, "-p", "abc", "--max-tokens", 0)
    assert (found.code, found.out) == (0, "\n")


def test_a_stop_text_ends_the_text(k3, checkpoint):
    common = ["generate", checkpoint, "-p", "abc", "--max-tokens", 30, "--seed", 4]
    whole = k3(*common, "--json").json["completions"][0]["text"]
    stop = next(c for c in whole if c.isascii() and c.isprintable())
    cut = k3(*common, "--stop", stop, "--json").json["completions"][0]
    assert cut["text"] == whole[: whole.index(stop)]
    assert cut["finish"] == "stop"


def test_a_picture_goes_before_the_text(k3, checkpoint, tmp_path):
    for name, size in [("a.png", (60, 57)), ("b.png", (28, 28))]:
        PIL.new("RGB", size, (200, 30, 90)).save(tmp_path / name)
    arguments = ["--max-tokens", 2, "--temperature", 0, "--json"]
    pictures = ["--image", tmp_path / "a.png", "--image", tmp_path / "b.png"]
    found = k3("generate", checkpoint, "-p", "x", *pictures, *arguments)
    prompt = found.json["completions"][0]["prompt_ids"]
    # 60x57 pads to 84x84: nine rows; 28x28 is one.
    assert prompt.count(277) == 10
    assert prompt[-1] == ord("x")


def test_pictures_go_where_ids_name_the_placeholder(k3, golden, tmp_path):
    PIL.new("RGB", (28, 56)).save(tmp_path / "a.png")
    picture = ["--image", tmp_path / "a.png", "--max-tokens", 1, "--json"]
    found = k3("generate", golden, "--ids", "1,245,2", *picture)
    assert found.json["completions"][0]["prompt_ids"] == [1, 245, 245, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", ""], "a prompt needs at least one token"),
        (["-p", "x", "--ids", "1"], "got both -p and --ids"),
        (["--ids", "1,b"], "--ids needs whole numbers"),
        (["--ids", "99999"], "token ids must be from 0 to 511: got 99999"),
        (["-p", "a", "-p", "b", "--image", "x.png"], "pictures go with one prompt"),
        (["-p", "a", "--image", "/no/such.png"], "such.png"),
        (["--temperature", "-1"], "temperature must be at least 0"),
        (["--dtype", "int8"], "--dtype must be one of"),
        (["--experts", "none"], "--experts must be one of"),
        (["--top-p", "0"], "top_p must be above 0 and at most 1: got 0"),
        (["--max-tokens", "1.5"], "--max-tokens needs a whole number of tokens"),
        (["--device", "tpu"], "--device must be auto, cpu"),
        (["--set", "top_q=1"], "did you mean top_"),
        (["--set", "top_k"], "--set needs KEY=VALUE"),
        (["--set", "top_k=many"], "--set top_k needs a value like 0: got 'many'"),
    ],
)
def test_requests_that_cannot_be_served(k3, checkpoint, arguments, message):
    found = k3("generate", checkpoint, *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.out == ""


def test_text_without_a_tokenizer_says_what_to_do(k3, golden):
    assert "token ids with --ids 1,2,3" in k3("generate", golden, "-p", "x").err


def test_set_gives_a_value_that_no_flag_gives(k3, checkpoint):
    arguments = ["-p", "x", "--set", "max_tokens=2", "--ignore-eos", "--json"]
    found = k3("generate", checkpoint, *arguments)
    assert len(found.json["completions"][0]["ids"]) == 2


@pytest.mark.parametrize(
    ("key", "flag"),
    [("max_tokens=64", "--max-tokens=64"), ("stop_ids=3", "--stop-id=3")],
)
def test_a_value_is_given_once(k3, checkpoint, key, flag):
    found = k3("generate", checkpoint, "-p", "x", "--set", key, flag)
    name = key.split("=")[0]
    assert found.code == 2
    assert f"got --set {name} and {flag.split('=')[0]}; drop one" in found.err


def test_the_help_lists_what_can_be_set(k3, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    keys = [field.name for field in dataclasses.fields(GenerateOptions)]
    assert ", ".join(keys) in k3("generate", "--help").out


def test_the_rules_of_the_program_are_those_of_the_library():
    given = {field.name: field.default for field in dataclasses.fields(GenerateOptions)}
    assert given == request.DEFAULTS
    for key, _, holds in request.RULES:
        for value in (("",), ("a",)) if key == "stop" else EDGES[type(given[key])]:
            try:
                GenerateOptions(**{key: value})
            except RequestError:
                assert not holds(value), (key, value)
            else:
                assert holds(value), (key, value)


EDGES = {
    int: (-1, 0, 1, 2**63 - 1, 2**63),
    float: (-0.1, 0.0, 0.5, 1.0, 1.5, float("inf"), float("nan")),
}


@pytest.fixture
def piped(monkeypatch):
    def put(data):
        stream = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        monkeypatch.setattr("sys.stdin", stream)

    return put


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_text_of_a_pipe_is_the_prompt(k3, checkpoint, piped, end):
    piped(f"ab\nc{end}".encode())
    found = k3("generate", checkpoint, "--max-tokens", 1, "--json")
    assert found.json["completions"][0]["prompt"] == "ab\nc"
    assert found.err == ""


@pytest.mark.parametrize("data", [b"", b"\n"])
def test_an_empty_pipe_leaves_the_example_and_says_so(k3, checkpoint, piped, data):
    piped(data)
    found = k3("generate", checkpoint, "--max-tokens", 1, "--json")
    assert found.json["completions"][0]["prompt"] == prompts.EXAMPLE
    assert f"nothing on standard input: {prompts.EXAMPLE!r} is continued" in found.err


@pytest.mark.parametrize("option", [["-p", "x"], ["--ids", "1"]])
def test_a_prompt_leaves_the_pipe_alone(k3, checkpoint, piped, option):
    piped(b"\xff")
    assert k3("generate", checkpoint, *option, "--max-tokens", 1).code == 0


def test_a_pipe_that_is_no_text_is_refused(k3, checkpoint, piped):
    piped(b"ab\xff")
    found = k3("generate", checkpoint)
    assert (found.code, found.out) == (2, "")
    assert "standard input must be text in utf-8: got byte 0xff" in found.err


def test_a_pipes_text_goes_with_pictures(k3, checkpoint, piped, tmp_path):
    PIL.new("RGB", (28, 28)).save(tmp_path / "a.png")
    for data, last in ((b"x", ord("x")), (b"", None)):
        piped(data)
        picture = ["--image", tmp_path / "a.png", "--max-tokens", 1, "--json"]
        done = k3("generate", checkpoint, *picture).json["completions"][0]
        assert (done["prompt_ids"][-1] == ord("x")) == (last is not None)


@pytest.mark.parametrize("model", ["The with statement", "nothing"])
def test_a_text_in_the_place_of_the_model(k3, model):
    found = k3("generate", model)
    assert found.code == 2
    assert f"for a text write -p {shlex.quote(model)}" in found.err
    assert "-p" not in k3("generate", model, "-p", "x").err


@pytest.mark.parametrize("name", ["paper", "released"])
@pytest.mark.parametrize("verb", [["generate"], ["chat"], ["convert", "/tmp/new"]])
def test_configs_have_no_weights(k3, name, verb):
    found = k3(verb[0], name, *verb[1:])
    assert found.code == 2
    why = f"configs without weights, which only k3 inspect and k3 plan read: got {name}"
    assert why in found.err


def test_dense_is_another_word_for_dequantized(k3, checkpoint):
    arguments = ["-p", "abc", "--max-tokens", 5, "--temperature", 0, "--experts"]
    dense = k3("generate", checkpoint, *arguments, "dense")
    assert dense.code == 0
    assert dense.out == k3("generate", checkpoint, *arguments, "dequantized").out


def test_a_terminal_shows_the_prompt_dimmed(k3, checkpoint, monkeypatch):
    common = ["generate", checkpoint, "-p", "abc", "--max-tokens", 3]
    alone = k3(*common).out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert (
        k3(*common).out
        == k3(*common, "--no-stream").out
        == (f"\x1b[2mabc\x1b[0m{alone}")
    )
    monkeypatch.setenv("NO_COLOR", "1")
    assert k3(*common).out == f"abc{alone}"


def test_ids_in_the_place_of_text_are_explained(k3, golden, checkpoint):
    arguments = ["--ids", "1,2", "--max-tokens", 2]
    for more in ([], ["--no-stream"]):
        assert (
            "token ids are printed, not text"
            in k3("generate", golden, *arguments, *more).err
        )
    assert k3("generate", checkpoint, *arguments).err == ""


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("stop=5", "--set stop needs texts: got 5"),
        ("stop=null", "--set stop needs texts: got None"),
        ('stop=["a", 1]', "--set stop needs texts: got 1"),
        ('stop_ids=["a"]', "--set stop_ids needs whole numbers: got 'a'"),
        ("stop_ids=1.5", "--set stop_ids needs whole numbers: got 1.5"),
        ("stop_ids=[true]", "--set stop_ids needs whole numbers: got True"),
        (f"temperature={'9' * 400}", "temperature must be at least 0 and finite"),
        (f"top_p=-{'9' * 400}", "top_p must be above 0 and at most 1: got -inf"),
        (f"seed={'9' * 400}", "seed must be from 0 to 2^63 - 1: got 999"),
    ],
)
def test_a_setting_of_the_wrong_kind_is_refused_by_name(k3, setting, said):
    found = k3("generate", "--set", setting)
    assert found.code == 2
    assert said in found.err
    assert len(found.err) < 250
