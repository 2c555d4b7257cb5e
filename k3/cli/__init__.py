"""The command line: `k3 VERB [MODEL] [options]`, one verb a file."""

from k3.cli.app import main as main

__all__ = ["main"]
