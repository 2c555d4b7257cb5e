"""The computations that cost time, in PyTorch: one file per concept, no state."""
