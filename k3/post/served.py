"""A server as the sampler of a run: each version's weights are written and pushed."""

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.model import Model
from k3.post.engine import SamplerOptions
from k3.post.episode import end_id
from k3.post.recipes import Recipe
from k3.post.remote import ServerSampler
from k3.train import pretrain

FOLDER = "pushed"
"""Where in a run's folder the weights for the server lie, one folder a version."""

KEPT = 2
PLACES = ("{folder}", "{version}")


def opened(
    url: str, push: str, directory: Path, recipe: Recipe, tokenizer: Tokenizer
) -> Callable[[Model], ServerSampler]:
    """What opens the server at `url` for a run.

    `push` is a command that makes the server take the weights of `{folder}`; it has
    succeeded when it ends with 0. Raises: RequestError for one without that place.
    """
    if PLACES[0] not in push:
        raise RequestError(
            f"a server is given new weights by a command with {PLACES[0]} in it: got "
            f"{push!r}; name the command that loads a folder there"
        )
    ends = (end_id(tokenizer),)

    def made(model: Model) -> ServerSampler:
        def hand_on(version: int) -> None:
            pushed(model, tokenizer, directory / FOLDER, version, push)

        options = SamplerOptions(stop_ids=ends, seed=recipe.seed)
        return ServerSampler(url, options, push=hand_on)

    return made


def pushed(
    model: Model, tokenizer: Tokenizer, parent: Path, version: int, push: str
) -> None:
    """Write a version's checkpoint and run the command that loads it.

    Raises: RequestError where the command fails.
    """
    folder = parent / f"{version:08d}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pretrain.package(model, folder)
    tokenizer.save(folder)
    words = [
        word.replace(PLACES[0], str(folder)).replace(PLACES[1], str(version))
        for word in shlex.split(push)
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RequestError(
            f"the server must take version {version}: got {done.returncode} from "
            f"{' '.join(words)}: {done.stderr.strip()[-200:]}"
        )
    # Later versions are of before a kill: the run makes them again.
    later = [path for path in parent.iterdir() if path.name > folder.name]
    older = sorted({*parent.iterdir()} - {*later})[:-KEPT]
    for old in (*older, *later):
        shutil.rmtree(old)
