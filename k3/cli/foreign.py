"""Flags that users of vLLM and SGLang type: honoured, noted as needless, or refused.

They are taken out before the verb's own options are read. Nothing is dropped silently.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from k3.errors import RequestError


@dataclass(frozen=True, slots=True)
class Flag:
    """`values` can be honoured, None is any; `note` says why it does nothing."""

    note: str
    takes_value: bool = False
    values: tuple[str, ...] | None = None
    remedy: str = "leave it out"


@dataclass(slots=True)
class Found:
    """What was taken out: the arguments that are left, and what to tell the user."""

    arguments: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# What another server calls one of our own options.
RENAMED = {
    "--model-path": "",
    "--model": "",
    "--context-length": "--max-model-len",
    "--max-running-requests": "--max-num-seqs",
    "--chunked-prefill-size": "--max-num-batched-tokens",
    "--page-size": "--block-size",
    "--disable-radix-cache": "--no-enable-prefix-caching",
}
_ONE = "this server runs one model in one process, --replicas N starts several"


def _any(note: str) -> Flag:
    return Flag(note, takes_value=True)


def _only(note: str, *values: str, remedy: str = "leave it out") -> Flag:
    return Flag(note, takes_value=True, values=values, remedy=remedy)


_PARALLEL = _only(_ONE, "1", remedy="leave it out, or use --replicas N")
FLAGS: dict[str, Flag] = {
    "--trust-remote-code": Flag("no code of a checkpoint is ever run"),
    "--enable-auto-tool-choice": Flag("tools are always on"),
    "--enable-chunked-prefill": Flag("prefill is always chunked"),
    "--enforce-eager": Flag("nothing is compiled"),
    "--disable-log-requests": Flag("requests are not logged"),
    "--disable-log-stats": Flag("statistics are at /metrics"),
    "--enable-metrics": Flag("statistics are always at /metrics"),
    "--reasoning-parser": _only("K3's own format is always read", "kimi_k3"),
    "--tool-call-parser": _only("K3's own format is always read", "kimi_k3"),
    "--chat-template": _only("the wire format is code, not a template"),
    "--tokenizer-mode": _only("there is one tokenizer", "auto"),
    "--quantization": _only("stored as it is", "compressed-tensors", "mxfp4"),
    "--kv-cache-dtype": _only("rows are kept in the model's dtype", "auto"),
    "--mamba-ssm-dtype": _only("KDA states are always float32", "float32", "auto"),
    "--speculative-algorithm": _only("drafting has one option", remedy="use "
                                     "--speculative-config"),
    "--tensor-parallel-size": _PARALLEL,
    "--tp": _PARALLEL,
    "--tp-size": _PARALLEL,
    "--pipeline-parallel-size": _PARALLEL,
    "--pp-size": _PARALLEL,
    "--data-parallel-size": _PARALLEL,
    "--dp-size": _PARALLEL,
    "--decode-context-parallel-size": _PARALLEL,
    "--gpu-memory-utilization": _any("memory is set with --set memory_bytes=N"),
    "--mem-fraction-static": _any("memory is set with --set memory_bytes=N"),
    "--mamba-full-memory-ratio": _any("rows and states share one pool"),
    "--mamba-cache-mode": _any("checkpoints are always aligned"),
    "--mamba-radix-cache-strategy": _any("there is one strategy"),
    "--load-format": _only("weights are safetensors", "auto", "safetensors",
                           "fastsafetensors"),
    "--moe-backend": _any("there is one backend"),
    "--moe-runner-backend": _any("there is one backend"),
    "--attention-backend": _any("there is one backend"),
    "--generation-config": _any("temperature 1 and top_p 0.95 are the defaults"),
    "--log-level": _any("warnings and errors are logged"),
}  # fmt: skip


def take_out(arguments: Sequence[str]) -> Found:
    """Split off the flags of other servers.

    Raises: RequestError for a value that cannot be honoured.
    """
    found = Found()
    left = iter(arguments)
    for word in left:
        name, equals, value = word.partition("=")
        # As vLLM reads them, --max_model_len is --max-model-len.
        name = name.replace("_", "-") if name.startswith("--") else name
        if name in RENAMED:
            found.arguments += [each for each in (RENAMED[name],) if each]
            found.arguments += [value] if equals else []
        elif name in FLAGS:
            _check(name, _value(name, value if equals else None, left), found)
        elif name.startswith("--"):
            found.arguments.append(name + equals + value)
        else:
            found.arguments.append(word)
    return found


def _value(name: str, given: str | None, left: Iterator[str]) -> str | None:
    if not FLAGS[name].takes_value or given is not None:
        return given
    value = next(left, None)
    if value is None or re.match("--[a-z]", value):
        raise RequestError(f"{name} needs a value: got none; {FLAGS[name].remedy}")
    return value


def _check(name: str, value: str | None, found: Found) -> None:
    flag = FLAGS[name]
    if flag.takes_value and flag.values is not None and value not in flag.values:
        known = f" only {', '.join(flag.values)}" if flag.values else " nothing"
        raise RequestError(
            f"{name} takes{known} here, for {flag.note}: got {value!r:.80}; "
            f"{flag.remedy}"
        )
    found.notes.append(f"{name} changes nothing: {flag.note}")
