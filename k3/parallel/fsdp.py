"""Weights in shards: FSDP2 over the ranks that share a stage."""
