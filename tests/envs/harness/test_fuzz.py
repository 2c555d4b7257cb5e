"""Whatever a model writes is answered in messages and never raised."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data.xtml import Message, ToolCall
from k3.envs import harness
from k3.envs.harness import PRESETS, Harnessed
from k3.envs.tasks import arithmetic, research, table

NAMES = ("search", "open", "find", "query", "compute", "bash", "submit", "Notes", "x")
KEYS = ("query", "name", "start", "text", "sql", "expression", "command", "answer")
TEXTS = st.text(max_size=20) | st.sampled_from(
    ["note-1", "select * from sales", "1 + 1", "open note-1 99", "query", "find note-1"]
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3).map(json.dumps)
CALLS = st.builds(
    ToolCall, st.sampled_from(NAMES), OBJECTS | st.text(max_size=9), st.booleans()
)
WORDS = (
    "Action: ",
    "Action Input:",
    "Final Answer:",
    "Observation:",
    "```bash\n",
    "\n",
)
LINES = st.lists(st.sampled_from((*WORDS, "```", *NAMES)) | TEXTS, max_size=8)
MESSAGES = st.builds(
    Message,
    st.none() | TEXTS,
    st.none() | LINES.map("".join),
    st.lists(CALLS, max_size=3).map(tuple),
    st.sampled_from(["stop", "length", "tool_calls"]),
)


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=12)
@given(messages=st.lists(MESSAGES, min_size=1, max_size=5), index=st.integers(0, 5))
def test_it_is_answered(name, messages, index):
    make = (arithmetic.make, research.make, table.make)[index % 3]
    played = Harnessed(make("train", index), harness.preset(name))
    played.begin()
    for message in messages:
        heard = played.reply(message)
        if heard is None:
            break
        assert heard
        assert all(isinstance(m["content"], str) for m in heard)
        native = played.harness.format == "native"
        assert not native or len(message.tool_calls) in (len(heard), 0)
    assert played.score() == played.score()
    played.close()
