"""Compile every kernel to a cubin: python compiled.py 90. Needs no device."""

import sys

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from k3.kernels.triton import attn_res, experts, mx, situ

TILE = {"BLOCK_B": 64, "BLOCK_N": 64, "BLOCK_K": 64}
NUMBERS = {"fp32": ("beta", "linear", "eps")}
INDEX = ("order", "first", "stop", "expert")
SIZES = ("size", "S", "D", "N", "rows", "B", "columns", "k", "L", "F")


def compiled(kernel, arch, dtype, constants, **special):
    """Print the size of a kernel's cubin; what is no number is a pointer to dtype."""
    signature = {}
    for name in kernel.arg_names:
        if name in constants:
            signature[name] = "constexpr"
        elif name in NUMBERS["fp32"]:
            signature[name] = "fp32"
        elif name in INDEX:
            signature[name] = "*i64"
        else:
            signature[name] = special.get(name, "i32" if name in SIZES else dtype)
    at = {(kernel.arg_names.index(name),): x for name, x in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=at)
    made = compile(source, target=GPUTarget("cuda", arch, 32))
    print(kernel.__name__, dtype, constants, len(made.asm["cubin"]))


def main(arch):
    width = {"WIDTH": 8192}
    compiled(attn_res.forward, arch, "*fp32", width)
    compiled(attn_res.backward, arch, "*fp32", width | {"ROWS": 16, "SOURCES": 16})
    for dtype in ("*fp32", "*bf16"):
        whole = {"WHOLE": dtype == "*fp32"}
        compiled(situ.forward, arch, dtype, {"BLOCK": 1024})
        compiled(situ.backward, arch, dtype, {"BLOCK": 1024})
        packed = {"weight": "*u8", "scale": "*u8"}
        compiled(mx.forward, arch, dtype, whole | TILE, **packed)
        for kind, stack in ((True, "*u8"), (False, dtype)):
            held = {n + i: stack for n in "ws" for i in "123"}
            how = whole | TILE | {"PACKED": kind}
            compiled(experts.enter, arch, dtype, how, **held)
            floats = {"weights": "*fp32", "y": "*fp32"}
            compiled(experts.leave, arch, dtype, how, **held, **floats)


if __name__ == "__main__":
    main(int(sys.argv[1]))
