"""Checkpoints in the released layout: names, headers, load, save, inspect, convert."""
