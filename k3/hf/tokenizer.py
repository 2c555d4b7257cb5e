"""k3's tokenizer under transformers' interface; chats are rendered by k3.data.xtml."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AddedToken, BatchEncoding, PreTrainedTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode
from transformers.utils import get_json_schema

from k3.checkpoint import locate
from k3.data import ranks, specials, xtml
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError

_SHOWN: dict[int, str] = bytes_to_unicode()
_NO_EFFECT = frozenset(
    {
        "cache_dir",
        "force_download",
        "local_files_only",
        "proxies",
        "revision",
        "subfolder",
        "token",
        "trust_remote_code",
        "_commit_hash",
        "_from_auto",
        "_from_pipeline",
        "use_fast",
        "config",
    }
)
# Where sequences are padded is for the caller to say; the rest is the vocabulary's.
_OPTIONS = frozenset(
    {"padding_side", "truncation_side", "model_max_length", "split_special_tokens"}
)


class KimiK3Tokenizer(PreTrainedTokenizer):
    """`core` is the k3.data.tokenizer.Tokenizer.

    Names of special tokens in a text are ordinary text, as everywhere in k3, unless
    `split_special_tokens=False` is given. Padding is on the left.
    """

    vocab_files_names = {"vocab_file": ranks.FILE_NAME}  # noqa: RUF012
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012
    padding_side = "left"

    def __init__(self, core: Tokenizer, **options: Any) -> None:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise RequestError(
                f"the tokenizer takes {', '.join(sorted(_OPTIONS))}: got "
                f"{', '.join(unknown)}; leave it out"
            )
        self.core = core
        start = core.num_ranks
        names = [core.token_bytes(i).decode() for i in range(start, core.vocab_size)]
        self._added_tokens_decoder = {
            start + i: AddedToken(name, special=True, normalized=False)
            for i, name in enumerate(names)
        }
        self._ids = {_shown(token): rank for token, rank in core.ranks.items()}
        super().__init__(
            **{"split_special_tokens": True, **options},
            **_roles(core, names),
            extra_special_tokens=list(core.named_specials),
        )

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        *args: Any,
        **kwargs: Any,
    ) -> "KimiK3Tokenizer":
        """Load tiktoken.model and tokenizer_config.json of a directory, or "tiny"."""
        folder = locate.locate(pretrained_model_name_or_path)
        options = {k: v for k, v in kwargs.items() if k not in _NO_EFFECT}
        made = cls(Tokenizer.load(folder), **options)
        made.name_or_path = str(folder)
        return made

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *args: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        """Write both files as the release has them; return their paths."""
        self.core.save(Path(save_directory))
        return tuple(
            str(Path(save_directory) / n) for n in (ranks.FILE_NAME, specials.FILE_NAME)
        )

    @property
    def vocab_size(self) -> int:
        """Ranks plus the 256 special places."""
        return self.core.vocab_size

    def get_vocab(self) -> dict[str, int]:
        """Every token as transformers shows it, with its id."""
        return self._ids | {t.content: i for i, t in self._added_tokens_decoder.items()}

    def tokenize(self, text: str, **options: Any) -> list[str]:
        """The tokens of a text; special names count with split_special_tokens=False."""
        split = options.get("split_special_tokens", self.split_special_tokens)
        ids = self.core.encode(text, allow_special=not split)
        return [self._convert_id_to_token(i) for i in ids]

    def _convert_token_to_id(self, token: str) -> int:
        if token not in self._ids:
            raise RequestError(f"a token must be of the vocabulary: got {token!r}")
        return self._ids[token]

    def _convert_id_to_token(self, index: int) -> str:
        if self.core.is_special(index):
            return self.core.token_bytes(index).decode()
        return _shown(self.core.token_bytes(index))

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """The text of tokens."""
        return self.core.decode(self.convert_tokens_to_ids(list(tokens)))

    def _decode(
        self, token_ids: Any, skip_special_tokens: bool = False, **options: Any
    ) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        return self.core.decode(ids, skip_special=skip_special_tokens)

    def apply_chat_template(
        self,
        conversation: Sequence[Any],
        tools: Sequence[Any] | None = None,
        *,
        tokenize: bool = True,
        return_dict: bool = True,
        return_tensors: str | None = None,
        padding: bool | str = False,
        max_length: int | None = None,
        images: Sequence[str] | None = None,
        **wanted: Any,
    ) -> Any:
        """Render a conversation, or several, and encode it segment by segment.

        `wanted` are the fields of xtml.RenderOptions: thinking (True), thinking_effort
        ("max"), tool_choice, response_format, add_generation_prompt (False here, as in
        transformers), continue_final_message. tokenize=False gives the text to read;
        encoding that text again is not the same, for user text may spell markers.
        Raises: RequestError whose first word is the field.
        """
        options = _render_options(tools, wanted)
        many = bool(conversation) and not isinstance(conversation[0], Mapping)
        chats = conversation if many else [conversation]
        prompts = [xtml.render(list(chat), options, images) for chat in chats]
        if not tokenize:
            texts = [prompt.text for prompt in prompts]
            return texts if many else texts[0]
        ids = [prompt.encode(self.core) for prompt in prompts]
        batched = many or return_tensors is not None
        out = self.pad(
            {"input_ids": ids if batched else ids[0]},
            padding=padding,
            max_length=max_length,
            return_tensors=return_tensors,
        )
        return BatchEncoding(out) if return_dict else out["input_ids"]


class TikTokenTokenizer(KimiK3Tokenizer):
    """The name that the release's tokenizer_config.json gives to its own program."""

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        *args: Any,
        **kwargs: Any,
    ) -> KimiK3Tokenizer:
        """Load K3's; refuse another model that calls its tokenizer so."""
        folder = locate.locate(pretrained_model_name_or_path)
        file = folder / "config.json"
        kind = (
            json.loads(file.read_bytes()).get("model_type") if file.exists() else None
        )
        if kind != "kimi_k3":
            raise RequestError(
                f"k3.hf reads the TikTokenTokenizer of kimi_k3: {folder} holds "
                f"{kind!r}; load that one in a program that does not import k3.hf"
            )
        return KimiK3Tokenizer.from_pretrained(folder, *args, **kwargs)


def _shown(token: bytes) -> str:
    """A token as transformers writes bytes: a printable character for each."""
    return "".join(_SHOWN[byte] for byte in token)


def _roles(core: Tokenizer, names: list[str]) -> dict[str, str]:
    found = {}
    for role in ("bos", "eos", "pad", "unk"):
        try:
            found[f"{role}_token"] = names[getattr(core, f"{role}_id") - core.num_ranks]
        except RequestError:
            # A vocabulary without this role has none here either.
            continue
    return found


def _render_options(
    tools: Sequence[Any] | None, wanted: dict[str, Any]
) -> xtml.RenderOptions:
    known = set(xtml.RenderOptions.__slots__) - {"tools"}
    unknown = sorted(k for k, v in wanted.items() if k not in known and v is not None)
    if unknown:
        raise RequestError(
            f"{unknown[0]} must be absent: apply_chat_template takes "
            f"{', '.join(sorted(known))}; remove it"
        )
    declared = [
        get_json_schema(tool) if callable(tool) else tool for tool in tools or ()
    ]
    given = {k: v for k, v in wanted.items() if k in known}
    return xtml.RenderOptions(
        tools=declared, **{"add_generation_prompt": False, **given}
    )
