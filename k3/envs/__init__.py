"""Environments for agents: tasks, graders, and the sandboxes that they run in."""
