"""Kernels in C++ behind the signatures of k3.kernels, and how they are found.

To add one: write `<concept>.cpp` with `K3_API void k3_<concept>_<what>(...)` taking
pointers, int64_t and float only, over `pool.h` (the parallel loop) and `simd.h`
(vectors of any width); bind it in `<concept>.py` with `library.function(name, types)`,
where inputs are made contiguous and outputs allocated; and send k3/kernels/<concept>.py
there when `choose.native(...)` says so. The PyTorch function stays: it is the proved
one, and takes every tensor that the kernel does not. `norm.cpp` and `norm.py` are the
pattern; `python k3/kernels/native/build.py` compiles what has changed.
"""
