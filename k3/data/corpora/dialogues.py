"""Short dialogues of the chatterbot-corpus package, as conversations."""

import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from k3.data.corpora.document import Corpus, Document, split
from k3.errors import RequestError

PACKAGE = "chatterbot-corpus"


def chatterbot() -> Corpus:
    """English questions and answers; each document is the JSON of its messages."""
    folder = package_folder("chatterbot_corpus", PACKAGE) / "data" / "english"
    return split(
        _documents(folder),
        name="chatterbot",
        source="English dialogues, PyPI package chatterbot-corpus",
        licence="BSD-3-Clause",
        version=version(PACKAGE),
    )


def package_folder(module: str, package: str) -> Path:
    """Where a package lies, without importing it.

    Raises: RequestError with the command that installs it.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise RequestError(
            f"this corpus needs PyPI's {package}: it is not installed; "
            f"pip install {package}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def version(package: str) -> str:
    """The installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _documents(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.glob("*.yml")):
        for place, turns in enumerate(_load(path).get("conversations") or []):
            messages = list(_messages(turns))
            if len(messages) > 1:
                text = json.dumps({"messages": messages}, ensure_ascii=False)
                yield Document(name=f"chatterbot:{path.stem}:{place}", text=text)


def _messages(turns: list[Any]) -> Iterator[dict[str, str]]:
    """The user begins and the assistant ends; both take turns."""
    for place, turn in enumerate(turns[: len(turns) // 2 * 2]):
        role = "assistant" if place % 2 else "user"
        yield {"role": role, "content": str(turn)}


def _load(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise RequestError(
            f"{PACKAGE} is YAML, which needs PyYAML: pip install pyyaml"
        ) from None
    found = yaml.safe_load(path.read_bytes())
    return found if isinstance(found, dict) else {}
