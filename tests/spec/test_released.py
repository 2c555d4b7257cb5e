"""The spec against the released program: logits, every layer, every memory."""

import numpy as np
from readings import released, text14

from k3.spec import model


def relative(got, wanted):
    return abs(got - wanted).max() / abs(wanted).max()


def test_fourteen_layers_with_every_tap():
    golden, text, weights = text14.golden(), text14.config().text, text14.weights()
    seen = {}

    def look(name, value):
        seen.setdefault(name, []).append(value)
        return value

    ids = golden["ids"].tolist()
    embeddings = model.embed(weights["model.embed_tokens.weight"], ids)
    states = model.empty_states(weights, text)
    got = model.run(weights, text, states, embeddings, tap=look)[1]
    assert relative(got, golden["logits_full"].reshape(got.shape)) < 5e-6
    taps = [name for name in golden if name.startswith("layers.")]
    assert len(taps) == 28
    for name in taps:
        wanted = golden[name]
        assert relative(np.stack(seen[name])[: len(wanted)], wanted) < 1e-5, name


def test_memories_after_all_tokens():
    golden, weights = released.golden(), released.weights()
    text = released.config().text
    embeddings = model.embed(
        weights["model.embed_tokens.weight"], golden["ids"].tolist()
    )
    states = model.empty_states(weights, text)
    after = model.run(weights, text, states, embeddings)[0]
    memories = [s for s in after if isinstance(s, model.Memory)]
    stored = [golden[name] for name in sorted(golden) if name.startswith("state_")]
    assert len(memories) == len(stored) == 5
    for memory, wanted in zip(memories, stored, strict=True):
        # The release holds [V K], the spec the paper's [K V].
        wanted = wanted.reshape(memory.S.shape)
        assert relative(memory.S.transpose(0, 2, 1), wanted) < 1e-4
