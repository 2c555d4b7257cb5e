from k3.spec import chat


def test_one_shot_options_keep_the_prefix():
    one = chat.layout(["tools"], ["hi"], ["choice"])
    two = chat.layout(["tools"], ["hi"], [])
    assert one[:2] == two == ["tools", "hi"]


def test_calls_and_results_share_indices():
    assert chat.indexed(["a", "b"]) == [(1, "a"), (2, "b")]
    results = [("y", 2), ("x", 1)]
    assert chat.ordered_results(["x", "y"], results) == [("x", 1), ("y", 2)]
    assert chat.ordered_results(["x"], results) == results


def test_thinking_is_kept_iff_thinking_mode():
    assert chat.channels("thinking", 1) == ["think", "response", "tools"]
    assert chat.channels("instruct", 0) == ["response"]
    assert chat.generation_channel("thinking") == "think"
    assert chat.generation_channel("instruct") == "response"


def test_arguments_have_spaces_in_the_release_alone():
    value = {"k": ["é", None, True]}
    assert chat.argument(value) == '{"k": ["é", null, true]}'
    assert chat.argument(value, "paper") == '{"k":["é",null,true]}'
    assert chat.argument('say "hi"') == 'say "hi"'


def test_attributes_are_escaped_once():
    assert chat.escape('a&"b') == "a&amp;&quot;b"
