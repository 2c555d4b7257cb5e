"""The toy recipe under torchrun: python torchrun_toy.py FOLDER [key=value ...]."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import toy

from k3.cli import app
from k3.data import corpora
from k3.errors import K3Error
from k3.train import distributed, sources


def main():
    corpora.stdlib = toy.corpus
    folder, *values = sys.argv[1:]
    settings = dict(value.split("=", 1) for value in values)
    if settings.pop("fail", ""):
        fail()
    recipe = toy.recipe().set({"steps": 2} | settings)
    try:
        distributed.run(recipe, folder, quiet=True)
    except K3Error as fault:
        print(f"k3: {fault}", file=sys.stderr)
        return app.USAGE
    return 0


def fail():
    """Let the second rank refuse its first row."""
    import os

    if os.environ["RANK"] == "1":

        def refuse(*_, **__):
            raise K3Error("this row cannot be read; choose another one")

        sources.mixture = refuse


if __name__ == "__main__":
    sys.exit(main())
