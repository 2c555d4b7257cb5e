"""The tokenizer: a tiktoken ranks file, 256 special places, one split expression."""

import json
import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, SupportsIndex

import tiktoken

from k3.data import ranks as rank_file
from k3.data import specials, split
from k3.data.stream import StreamDecoder
from k3.errors import RequestError


class Tokenizer:
    """Text to ids and back. Immutable; safe to share between threads.

    Ids below the number of ranks are ordinary text; the 256 after them are special.
    User text never yields a special id: that takes `allow_special=True`.
    """

    def __init__(
        self, ranks: Mapping[bytes, int], config: Mapping[str, Any] | None = None
    ) -> None:
        rank_file.check(ranks, "ranks")
        self._ranks = dict(ranks)
        if config is None:
            config = specials.released_config(len(ranks))
        self._config = dict(config)
        self._specials = specials.ids(self._config, len(ranks))
        self._roles = specials.roles(self._config, self._specials)
        self._bytes = _table(self._ranks, self._specials)
        self._encoding = tiktoken.Encoding(
            "k3",
            pat_str=split.PATTERN,
            mergeable_ranks=self._ranks,
            special_tokens=self._specials,
            explicit_n_vocab=len(self._bytes),
        )

    @classmethod
    def load(cls, directory: str | Path) -> "Tokenizer":
        """From tiktoken.model and tokenizer_config.json of a directory.

        Without the second file every special place is reserved and has no role.
        Raises: CheckpointError.
        """
        directory = Path(directory)
        ranks = rank_file.read(directory / rank_file.FILE_NAME)
        return cls(ranks, specials.read(directory / specials.FILE_NAME))

    def save(self, directory: str | Path) -> None:
        """Write both files; each is complete or absent."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        rank_file.write(self._ranks, directory / rank_file.FILE_NAME)
        text = json.dumps(self._config, indent=2, ensure_ascii=False) + "\n"
        rank_file.replace(directory / specials.FILE_NAME, text.encode())

    def encode(self, text: str, allow_special: bool = False) -> list[int]:
        """The ids of `text`; lone surrogates are read as U+FFFD.

        `allow_special` is for text that the program wrote itself: special names in
        it become special ids.
        """
        ids: list[int] = []
        for chunk in split.chunks(text):
            if allow_special:
                ids += self._encoding.encode(chunk, allowed_special="all")
            else:
                ids += self._encoding.encode_ordinary(chunk)
        return ids

    def decode(self, ids: Iterable[SupportsIndex], skip_special: bool = False) -> str:
        """The text of `ids`; bytes that are not UTF-8 become replacement marks.

        Raises: RequestError for an id outside the vocabulary.
        """
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(
        self, ids: Iterable[SupportsIndex], skip_special: bool = False
    ) -> bytes:
        """The bytes of `ids`, special tokens as their names or left out.

        Raises: RequestError for an id outside the vocabulary.
        """
        token_bytes = self._text_bytes if skip_special else self.token_bytes
        return b"".join(map(token_bytes, ids))

    def stream(self, skip_special: bool = False) -> StreamDecoder:
        """A decoder for ids that arrive one at a time."""
        return StreamDecoder(self._text_bytes if skip_special else self.token_bytes)

    def token_bytes(self, token_id: SupportsIndex) -> bytes:
        """The bytes of one id.

        Raises: RequestError for an id outside the vocabulary.
        """
        index = operator.index(token_id)
        if not 0 <= index < len(self._bytes):
            raise RequestError(
                f"a token id must be 0 to {len(self._bytes) - 1}: got {index}; "
                "use the tokenizer that belongs to the model"
            )
        return self._bytes[index]

    def _text_bytes(self, token_id: SupportsIndex) -> bytes:
        found = self.token_bytes(token_id)
        return b"" if self.is_special(token_id) else found

    def is_special(self, token_id: SupportsIndex) -> bool:
        """True for the places after the ranks."""
        return operator.index(token_id) >= len(self._ranks)

    def special_id(self, name: str) -> int:
        """The id of a special token by its name.

        Raises: RequestError when the vocabulary has no such special token.
        """
        if name not in self._specials:
            raise RequestError(
                f"a special token must be one of the vocabulary: got {name!r}; "
                f"the named ones are {', '.join(self.named_specials)}"
            )
        return self._specials[name]

    @property
    def named_specials(self) -> dict[str, int]:
        """Special tokens that tokenizer_config.json names, with their ids."""
        reserved = specials.ids({}, len(self._ranks))
        return {n: i for n, i in self._specials.items() if reserved.get(n) != i}

    @property
    def ranks(self) -> dict[bytes, int]:
        """Token bytes of ordinary text with their ranks (a copy)."""
        return dict(self._ranks)

    @property
    def num_ranks(self) -> int:
        """How many ids are ordinary text; also the first special id."""
        return len(self._ranks)

    @property
    def vocab_size(self) -> int:
        """Ranks plus the 256 special places."""
        return len(self._bytes)

    @property
    def bos_id(self) -> int:
        """Id of the file's bos_token."""
        return self._role("bos_token")

    @property
    def eos_id(self) -> int:
        """Id of the file's eos_token; generation stops on the config's own ids."""
        return self._role("eos_token")

    @property
    def pad_id(self) -> int:
        """Id of the file's pad_token."""
        return self._role("pad_token")

    @property
    def unk_id(self) -> int:
        """Id of the file's unk_token; byte-level encoding never yields it."""
        return self._role("unk_token")

    def _role(self, role: str) -> int:
        if role not in self._roles:
            raise RequestError(
                f"{role} must be named in {specials.FILE_NAME}: it is not; "
                "add it or use the id of config.json"
            )
        return self._roles[role]


def _table(ranks: Mapping[bytes, int], special_ids: Mapping[str, int]) -> list[bytes]:
    table = [b""] * (len(ranks) + len(special_ids))
    for token, rank in ranks.items():
        table[rank] = token
    for name, place in special_ids.items():
        table[place] = name.encode()
    return table
