"""The EAGLE-3 draft: which features it reads and how they are fused."""

from collections.abc import Callable, Sequence

from k3.spec import kda, ops
from k3.spec.ops import Array

STEPS = 7


def features(block_outputs: Sequence[Array]) -> Array:
    """EAGLE-3: outputs of the first, fourth and final block, [low mid high] = [3 D].

    At least four blocks; the running sum counts as the final one.
    """
    low, middle, high = block_outputs[0], block_outputs[3], block_outputs[-1]
    return ops.concat([low, middle, high])


def fuse(W: Array, triple: Array) -> Array:
    """EAGLE-3: W_E3 [low mid high], without bias. [D 3D], [3D] to [D]."""
    return W @ triple


def initial_fusion(like: Array) -> Array:
    """EAGLE-3: W_E3 = [0 0 I], so that training starts from the final block. [D 3D]."""
    zero = ops.zeros(like, (len(like), len(like)))
    return ops.concat([zero, zero, kda.identity(like)], axis=1)


def token_input(W: Array, F: Array, embedding: Array, feature: Array) -> Array:
    """EAGLE-3: the draft layer's input, W embedding + F feature. [D D] each, to [D]."""
    return W @ embedding + F @ feature


def unroll(
    step: Callable[[Array, Array], tuple[Array, Array]],
    feature: Array,
    embeddings: Sequence[Array],
) -> list[Array]:
    """EAGLE-3, training-time test: each step reads the feature that the last one wrote.

    step(embedding, feature) gives the next feature and the step's answer, such as its
    distribution. Returns the answers, one an embedding.
    """
    answers = []
    for embedding in embeddings:
        feature, answer = step(embedding, feature)
        answers.append(answer)
    return answers
