"""Read this first: a toy K3 is trained, saved, loaded and asked to write."""

import dataclasses

import torch
import toy

import k3
from k3.data import bpe
from k3.data.corpora import Document
from k3.data.mixture import Mixture
from k3.data.tokenizer import Tokenizer
from k3.model.generate import GenerateOptions, generate
from k3.train import loop, pretrain, stream

SENTENCE = "A small model learns one sentence by heart and says it again. "


def test_train_save_load_generate(tmp_path):
    small = toy.recipe()
    text = Document(name="text", text=SENTENCE * 40)
    words = [text.text, stream.__doc__, loop.__doc__]
    tokenizer = Tokenizer(bpe.train(words, small.num_ranks, min_frequency=1))
    recipe = dataclasses.replace(small, steps=40, batch=4, learning_rate=2e-2)

    model = pretrain.fresh(recipe)
    source = stream.Text(stream.tokens([text], tokenizer), recipe.seed)

    def rows(tokens: int) -> Mixture:
        return Mixture(
            sources=[source],
            weights=[1.0],
            tokens=tokens,
            seed=recipe.seed,
            pad_id=tokenizer.pad_id,
        )

    loop.run(model, rows, recipe, tmp_path, facts={})
    pretrain.package(model, tmp_path)
    tokenizer.save(tmp_path)

    loaded, words = k3.load(tmp_path), k3.tokenizer(tmp_path)
    prompt = words.encode(SENTENCE[:20])
    options = GenerateOptions(max_tokens=12, temperature=0.0)
    (answer,) = generate(loaded, [prompt], options)
    written = words.decode(answer.ids)
    assert SENTENCE[20:].startswith(written.rstrip()[:10])

    ids = torch.tensor([words.encode(SENTENCE)[:12]])
    whole = loaded(ids)
    logits, state = loaded(ids[:, :5], state=loaded.init_state(1))
    parts = [logits]
    for i in range(5, 12):
        logits, state = loaded.step(ids[:, i : i + 1], state)
        parts.append(logits)
    gap = (torch.cat(parts, 1) - whole).abs().max() / whole.abs().max()
    assert gap < 5e-2
