"""Post-training end to end: engines that sample, environments, loops that learn."""
