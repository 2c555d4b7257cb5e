"""CUDA kernels in Triton, for what PyTorch and fla-core have nothing for.

Imported only where `choose.triton` says so: importing one of them imports triton.
"""
