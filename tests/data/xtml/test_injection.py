"""Users, tools and past answers may spell any token: it stays text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data.xtml import render

MARKUP = st.lists(
    st.sampled_from(["<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|", "|>"])
    | st.sampled_from(["<|media_pad|>", "[EOS]", "<|reserved_token_8|>", "message"])
    | st.text(max_size=3)
).map("".join)


@settings(max_examples=50, deadline=None)
@given(st.lists(MARKUP, min_size=6, max_size=6))
def test_text_never_makes_special_tokens(byte_tokenizer, words):
    def messages(parts):
        a, b, c, d, e, f = parts
        call = {"name": f"n{a}", "arguments": {b: c, f"{b}2": [d]}}
        return [
            {"role": "system", "content": a},
            {"role": "user", "content": [{"type": "text", "text": b}], "name": c},
            {"role": "assistant", "content": d, "reasoning": e, "tool_calls": [call]},
            {"role": "tool", "content": f},
        ]

    def structure(parts):
        ids = render(messages(parts)).encode(byte_tokenizer)
        return [i for i in ids if byte_tokenizer.is_special(i)]

    assert structure(words) == structure(["x", "y", "z", "u", "v", "w"])
