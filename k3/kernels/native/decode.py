"""The decode step of a whole model natively: what C++ is handed, and the call.

The structures have the fields of decode.h in its order, eight bytes each.
"""

import ctypes
from typing import Any

from k3.kernels.native import library


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


WHOLE, REAL, POINTER = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class Sizes(ctypes.Structure):
    """Sizes and constants of a model."""

    _fields_ = [
        *_fields(
            WHOLE,
            "D vocab layers kda_heads K V past mla_heads nope rope mla_v q_lora latent"
            " E active L F",
        ),
        *_fields(REAL, "eps lora_eps lower_bound beta linear_beta scaling"),
        ("has_lower_bound", WHOLE),
    ]


class Layer(ctypes.Structure):
    """One layer: what kind it is and where its weights are."""

    _fields_ = [
        *_fields(WHOLE, "is_mla is_moe starts_block"),
        *_fields(
            POINTER,
            "input_norm post_norm attn_res_norm attn_res_proj mlp_res_norm mlp_res_proj"
            " q k v f_a f_b b g o q_conv k_conv v_conv A_log dt_bias o_norm"
            " q_a q_a_norm q_b kv_a kv_a_norm kv_b",
        ),
        ("width", WHOLE),
        *_fields(
            POINTER,
            "gate up down router router_bias latent_down latent_norm latent_up"
            " w1 w2 w3 s1 s2 s3",
        ),
    ]


class Carried(ctypes.Structure):
    """What a layer reads of a state, and where it leaves the next one."""

    _fields_ = [
        *_fields(POINTER, "state_in state_out window_in window_out rows"),
        ("stride", WHOLE),
        *_fields(POINTER, "kept_raw kept_k kept_v kept_g kept_beta"),
    ]


class Model(ctypes.Structure):
    """Where sizes, layers and the weights outside of layers are."""

    _fields_ = _fields(
        POINTER, "sizes layers embed output_res_norm output_res_proj norm head"
    )


class Run(ctypes.Structure):
    """The next tokens of a batch."""

    _fields_ = [
        *_fields(WHOLE, "batch tokens threads"),
        *_fields(POINTER, "ids lens carried states windows logits"),
        *_fields(POINTER, "sums index weights"),
        ("refused", WHOLE),
    ]


def step(model: Model, run: Run, trunk: int) -> None:
    """Run the next tokens of every sequence: `run.logits` and the carried state.

    `trunk` is product.trunk of the dtypes of values and of matrices.
    Sets `run.refused`, and does nothing else, where an id is no token of the model.
    """
    call = library.function("k3_decode_step", "ppi")
    call(ctypes.addressof(model), ctypes.addressof(run), trunk)
