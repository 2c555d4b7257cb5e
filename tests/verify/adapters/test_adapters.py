"""fla's and transformers' signatures: their functions are ours once converted."""

import pytest

from k3.errors import RequestError
from k3.verify.adapters import adapted
from k3.verify.operators import find
from k3.verify.operators.check import check, load

THEIRS = "transformers.models.kimi_linear.modeling_kimi_linear"
pytestmark = pytest.mark.filterwarnings("ignore")
TRANSFORMERS = {
    "kda.recurrent": "recurrent_kimi_delta_attention",
    "kda.chunk": "chunk_kimi_delta_attention",
    "mla.expanded": "eager_attention_forward",
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name):
    function = load(f"{THEIRS}:{TRANSFORMERS[name]}")
    # Unwrapped: the wrapper looks for kernels to download.
    function = getattr(function, "__wrapped__", function)
    exact = name == "mla.expanded"
    verdict = check(adapted(function, name, "transformers"), find(name), exact=exact)
    assert verdict, verdict


def test_fla_in_its_layout_and_out_of_it(naive):
    function = adapted(naive.naive_recurrent_kda, "kda.recurrent", "fla")
    assert check(function, find("kda.recurrent"))
    function = adapted(naive.naive_chunk_kda, "kda.chunk", "fla")
    assert check(function, find("kda.chunk"))


def test_a_state_in_the_other_layout_is_named(naive):
    def transposed(q, k, v, g, beta, *, initial_state, output_final_state):
        given = initial_state.mT
        out, S = naive.naive_recurrent_kda(
            *(q, k, v, g, beta),
            initial_state=given,
            output_final_state=output_final_state,
        )
        return out, S.mT

    function = adapted(transposed, "kda.recurrent", "fla")
    verdict = check(function, find("kda.recurrent"))
    assert verdict.diagnosis == "swapping the K and V axes of the state"


def test_our_signature_is_left_alone():
    assert adapted(len, "situ", "k3") is len


def test_unknown_signatures_and_operators_are_refused():
    with pytest.raises(RequestError, match=r"must be one of k3, fla, transformers"):
        adapted(len, "situ", "flash")
    with pytest.raises(RequestError, match=r"signatures of fla cover kda.recurrent"):
        adapted(len, "situ", "fla")
