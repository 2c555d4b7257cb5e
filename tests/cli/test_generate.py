"""k3 generate: text, ids, pictures, batches, JSON."""

import pytest

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


def test_set_wins_over_the_option(k3, checkpoint):
    arguments = ["-p", "x", "--max-tokens", 9, "--set", "max_tokens=2", "--ignore-eos"]
    found = k3("generate", checkpoint, *arguments, "--json")
    assert len(found.json["completions"][0]["ids"]) == 2
