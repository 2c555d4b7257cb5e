"""`k3 serve`: an OpenAI-compatible server over one model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from k3.cli import drafting, fleet, foreign, loading, options, output, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.data.tokenizer import Tokenizer
    from k3.serve.openai import ServerOptions
    from k3.serve.options import EngineOptions
    from k3.serve.worker import Worker

SERVER_KEYS = (
    *("max_body_bytes", "max_images", "max_image_bytes", "max_prompts", "max_n"),
    "max_logprobs",
)
ENGINE_KEYS = (
    *("max_waiting", "long_tokens", "max_num_long_seqs", "max_num_long_tokens"),
    *("state_bytes", "long_state_bytes", "cache_dir_bytes"),
)
CACHE_KEYS = ("memory_bytes", "chunk_tokens", "groups")
# Of small models too, a prompt must be able to leave whole blocks behind.
BLOCK_TOKENS, HASH_TOKENS = 1024, 512

Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every one.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")]
Names = Annotated[
    list[str] | None,
    typer.Option("--served-model-name", help="What requests call it; may be repeated."),
]
ApiKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--api-key",
        envvar="K3_API_KEY",
        help="Callers must show it; may be repeated. Each has its own cached prefixes.",
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-origins", help="A web page that may call; * is any. May be repeated."
    ),
]
MaxLen = Annotated[
    int,
    typer.Option(
        "--max-model-len",
        metavar="N",
        parser=settings.tokens("--max-model-len"),
        help="Most tokens of prompt and answer; 0 is the model's own.",
    ),
]
Seqs = Annotated[
    int, typer.Option("--max-num-seqs", help="Sequences decoded together.")
]
Batched = Annotated[
    int, typer.Option("--max-num-batched-tokens", help="Most tokens of one step.")
]
Caching = Annotated[
    bool, typer.Option("--enable-prefix-caching/--no-enable-prefix-caching")
]
Block = Annotated[int, typer.Option("--block-size", help="Tokens of a physical block.")]
Match = Annotated[
    int, typer.Option("--prefix-match-unit", help="Tokens of a hash block.")
]
Speculative = Annotated[
    str,
    typer.Option(
        "--speculative-config",
        metavar="JSON",
        help='{"method": "ngram", "num_speculative_tokens": 4} or {"model": DIR, ...}.',
    ),
]
CacheDir = Annotated[
    str,
    typer.Option(
        "--cache-dir", metavar="DIR", help="Folder of states that outlive the server."
    ),
]
Drain = Annotated[
    float, typer.Option(help="Seconds for running requests after a signal.")
]
SetServe = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a limit; may be repeated. Keys: "
        f"{', '.join((*SERVER_KEYS, *ENGINE_KEYS, *CACHE_KEYS))}.",
    ),
]


class ServeCommand(TyperCommand):
    """The verb, which also understands flags of other servers."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the foreign flags out first, and say what they do not do."""
        found = foreign.take_out(args)
        for note in found.notes:
            output.warn(note)
        return list(super().parse_args(ctx, found.arguments))


def serve(
    model: options.Model = "tiny",
    *,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    served_model_name: Names = None,
    api_key: ApiKeys = None,
    allowed_origins: Origins = None,
    max_model_len: MaxLen = 0,
    max_num_seqs: Seqs = 64,
    max_num_batched_tokens: Batched = 2048,
    enable_prefix_caching: Caching = True,
    block_size: Block = BLOCK_TOKENS,
    prefix_match_unit: Match = HASH_TOKENS,
    cache_dir: CacheDir = "",
    speculative_config: Speculative = "",
    drain_seconds: Drain = 600.0,
    replicas: fleet.Replicas = 0,
    simulate: fleet.Simulate = False,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    settings: SetServe = None,
    json: options.Json = False,
) -> None:
    """Serve a model over HTTP, as OpenAI's clients expect it.

    \b
    k3 serve
    k3 serve DIR --port 8000 --served-model-name k3 --api-key secret
    k3 serve DIR --speculative-config '{"method":"ngram","num_speculative_tokens":4}'
    """
    # As the first statement: here locals() is the parameters and nothing else.
    asked = locals()
    loading.check(dtype, device, experts)
    if not fleet.takes(asked):
        start(loading.find(model), asked)


def start(path: Path, asked: dict[str, Any]) -> None:
    """Listen, load, serve, and end when a signal comes."""
    extra, draft = _settings(asked["settings"]), drafting.read(asked)
    asked["draft"] = draft
    from k3.reader import serve as reader
    from k3.serve.openai import app, server

    tokenizer = loading.tokenizer(path)
    if tokenizer is None:
        raise RequestError(
            f"serving needs a tokenizer: {path} has no tiktoken.model; add it"
        )
    served = _server_options(path, asked, extra)
    engine = _engine_options(asked, extra, draft)
    listening = server.listen(asked["host"], asked["port"])
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    output.note(f"k3: {url} answers; loading {path}")

    def loaded() -> None:
        if asked["json"]:
            output.json_line({"url": url, "models": list(served.names)})
        else:
            print(f"k3: serving {', '.join(served.names)} at {url}/v1", flush=True)

    whole = server.serve(
        app(None, tokenizer, served, reader=reader.pages()),
        lambda: _worker(path, asked, engine, tokenizer),
        listening,
        drain_seconds=asked["drain_seconds"],
        loaded=loaded,
    )
    if not whole:
        raise KeyboardInterrupt


def _worker(
    path: Path, asked: dict[str, Any], engine: "EngineOptions", tokenizer: "Tokenizer"
) -> "Worker":
    """The engine on its thread, once the weights are there."""
    from k3.serve.engine import Engine
    from k3.serve.worker import Worker

    names = {name: asked[name] for name in ("dtype", "device", "experts")}
    found = loading.load_frozen(path, **names)
    draft = drafting.load(asked["draft"], names)
    # Of files it is a digest: what another process stored with it can be read.
    weights = f"{found.model.weight_version:x}"
    made = Engine(
        found.model, engine, tokenizer=tokenizer, draft=draft, weights=weights
    )
    return Worker(made)


def _settings(given: list[str] | None) -> dict[str, Any]:
    found = settings.parse(given or [])
    settings.refuse_unknown(found, (*SERVER_KEYS, *ENGINE_KEYS, *CACHE_KEYS))
    for key, value in found.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise RequestError(
                f"--set {key} needs a whole number from 0: got {value!r:.80}"
            )
    return found


def _pick(found: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key in keys}


def _server_options(
    path: Path, asked: dict[str, Any], extra: dict[str, Any]
) -> "ServerOptions":
    from k3.config import K3Config
    from k3.data.limits import ImageLimits
    from k3.serve.openai import ServerOptions

    return ServerOptions(
        config=K3Config.load(path / "config.json"),
        names=tuple(asked["served_model_name"] or (path.resolve().name,)),
        max_model_len=asked["max_model_len"],
        api_keys=tuple(asked["api_key"] or ()),
        allowed_origins=tuple(asked["allowed_origins"] or ()),
        image_limits=ImageLimits.load(path),
        **_pick(extra, SERVER_KEYS),
    )


def _engine_options(
    asked: dict[str, Any], extra: dict[str, Any], draft: dict[str, Any]
) -> "EngineOptions":
    from k3.serve.layout import CacheOptions
    from k3.serve.options import EngineOptions

    cache = None
    if asked["enable_prefix_caching"]:
        sizes = {"chunk_tokens": asked["block_size"], **_pick(extra, CACHE_KEYS)}
        cache = CacheOptions(
            block_tokens=asked["block_size"],
            hash_tokens=asked["prefix_match_unit"],
            **sizes,
        )
    return EngineOptions(
        max_num_seqs=asked["max_num_seqs"],
        max_num_batched_tokens=asked["max_num_batched_tokens"],
        max_model_len=asked["max_model_len"],
        cache=cache,
        cache_dir=asked["cache_dir"],
        num_speculative_tokens=draft.get("num_speculative_tokens", 0),
        **_pick(extra, ENGINE_KEYS),
    )
