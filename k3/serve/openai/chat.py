"""POST /v1/chat/completions: a conversation as a request to the engine."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from k3.data import xtml
from k3.data.xtml.segments import END
from k3.serve.openai import grammar, images, limits, sampling
from k3.serve.openai.chat_reply import Asked, ChatReply
from k3.serve.openai.errors import invalid
from k3.serve.openai.fields import Fields, refuse_keys, wrong
from k3.serve.openai.reply import Identity
from k3.serve.openai.service import Service
from k3.serve.request import Constraint, Request

RENDERED = (
    *("messages", "tools", "tool_choice", "response_format", "reasoning_effort"),
    *("chat_template_kwargs", "thinking", "continue_final_message"),
    "add_generation_prompt",
)
FIELDS = (
    *("model", *RENDERED, *sampling.FIELDS, "parallel_tool_calls"),
    *("logprobs", "top_logprobs", "stream", "stream_options", "cache_salt"),
)
EFFORTS = ("none", "low", "high", "max")
TEMPLATE_KEYS = ("thinking", "enable_thinking", "reasoning_effort", "thinking_effort")


def prepare(service: Service, body: Mapping[str, Any], tenant: bytes) -> ChatReply:
    """The reply to a request body, ready to run.

    Raises: ApiError, RequestError.
    """
    fields = Fields(body)
    fields.refuse_unknown(FIELDS)
    model = service.model_name(fields.get("model"))
    render = render_options(fields)
    identity = Identity(
        id=f"chatcmpl-{secrets.token_hex(12)}",
        model=model,
        fingerprint=service.options.fingerprint,
    )
    rendered = _Rendered(service, fields, render)
    asked = Asked(
        request=_request(service, fields, rendered, identity.id, tenant),
        identity=identity,
        start_in=rendered.start_in,
        stop=sampling.stops(fields),
        logprobs=fields.flag("logprobs", False),
        stream=fields.flag("stream", False),
        include_usage=include_usage(fields),
    )
    return ChatReply(asked, service.tokenizer, service.counters.problems)


def render_options(fields: Fields) -> xtml.RenderOptions:
    """How the conversation is rendered; effort `none` is no thinking.

    Raises: ApiError, RequestError.
    """
    template = fields.mapping("chat_template_kwargs")
    refuse_keys("chat_template_kwargs", template, TEMPLATE_KEYS)
    effort = fields.get("reasoning_effort")
    if effort is None:
        effort = template.get("reasoning_effort", template.get("thinking_effort"))
    if effort is not None and effort not in EFFORTS:
        raise wrong("reasoning_effort", f"one of {', '.join(EFFORTS)}", effort)
    thinking = _thinking(fields, template) and effort != "none"
    asked = {
        "tools": fields.get("tools"),
        "tool_choice": fields.get("tool_choice"),
        "response_format": fields.get("response_format"),
        "add_generation_prompt": fields.get("add_generation_prompt"),
        "continue_final_message": fields.get("continue_final_message"),
    }
    if asked["continue_final_message"] and asked["add_generation_prompt"] is None:
        asked["add_generation_prompt"] = False
    if asked["add_generation_prompt"] is False and not asked["continue_final_message"]:
        raise invalid(
            "add_generation_prompt must be true unless continue_final_message is: an "
            "answer needs a place to begin",
            "add_generation_prompt",
        )
    given = {name: value for name, value in asked.items() if value is not None}
    return xtml.RenderOptions(
        thinking=thinking,
        thinking_effort=effort if thinking and effort else "max",
        **given,
    )


def include_usage(fields: Fields) -> bool:
    """Whether a stream ends with its usage."""
    options = fields.mapping("stream_options")
    refuse_keys("stream_options", options, ("include_usage", "include_obfuscation"))
    if options and not fields.flag("stream", False):
        raise invalid("stream_options needs stream: true", "stream_options")
    return Fields(options).flag("include_usage", False)


def _thinking(fields: Fields, template: Mapping[str, Any]) -> bool:
    """The switch in its three spellings; thinking unless one of them says no."""
    wanted: Any = fields.get("thinking")
    if isinstance(wanted, Mapping):
        kind = wanted.get("type")
        if kind not in ("enabled", "disabled"):
            raise wrong("thinking.type", "enabled or disabled", kind)
        wanted = kind == "enabled"
    for value in (wanted, *map(template.get, TEMPLATE_KEYS[:2])):
        if value is not None:
            if not isinstance(value, bool):
                raise wrong("chat_template_kwargs.thinking", "true or false", value)
            return value
    return True


class _Rendered:
    """The prompt of a conversation: its ids, its pictures, where the answer begins."""

    def __init__(
        self, service: Service, fields: Fields, options: xtml.RenderOptions
    ) -> None:
        self.options = options
        self.messages = fields.get("messages")
        self.pictures = images.read(self.messages, options, service.options)
        prompt = xtml.render(self.messages, options, self.pictures.prompts)
        self.start_in = prompt.start_in
        self.ids = prompt.encode(service.tokenizer)
        self.places: Any = ()
        placeholder = service.options.config.media_placeholder_token_id
        if placeholder is not None:
            merge = service.options.image_limits.merge_kernel_size
            self.ids, self.places = self.pictures.expand(self.ids, placeholder, merge)

    @property
    def tools(self) -> list[Mapping[str, Any]]:
        """The tools declared, in the request and on the way."""
        found = [*self.options.tools]
        for message in self.messages:
            found += message.get("tools") or ()
        return found


def _request(
    service: Service, fields: Fields, rendered: _Rendered, name: str, tenant: bytes
) -> Request:
    wanted = sampling.wanted_tokens(fields, 1)
    room = room_for(service, len(rendered.ids), "messages")
    options = sampling.read(
        fields,
        vocabulary=service.options.config.text.vocab_size,
        logprobs=_top_logprobs(service, fields),
    )
    ends = () if options.ignore_eos else (service.tokenizer.special_id(END),)
    return Request(
        id=name,
        tokens=tuple(rendered.ids),
        options=replace(
            options,
            max_tokens=min(room, wanted or room),
            stop_ids=(*options.stop_ids, *ends),
        ),
        n=sampling.samples(fields, service.options.max_n),
        images=rendered.places,
        pixels=rendered.pictures.pixels,
        grids=rendered.pictures.grid_rows,
        salt=salted(fields, tenant),
        constraint=_constraint(service, fields, rendered),
    )


def room_for(service: Service, prompt_tokens: int, field: str) -> int:
    """How many tokens an answer may have after a prompt.

    Raises: ApiError 400 with both numbers when there is no room for one.
    """
    context = service.options.context_tokens
    room = context - prompt_tokens
    if room < 1:
        raise invalid(
            f"{field} must leave room for an answer: the prompt has {prompt_tokens} "
            f"tokens and this model's context is {context} tokens; shorten it",
            field,
            "context_length_exceeded",
        )
    return room


def salted(fields: Fields, tenant: bytes) -> bytes:
    """The tenant's salt, with the request's own where it has one."""
    own = fields.text("cache_salt")
    return tenant + limits.salt(own) if own else tenant


def _top_logprobs(service: Service, fields: Fields) -> int:
    wanted = fields.integer("top_logprobs", 0, 0, service.options.max_logprobs) or 0
    if wanted and not fields.flag("logprobs", False):
        raise invalid("top_logprobs needs logprobs: true", "top_logprobs")
    return wanted


def _constraint(
    service: Service, fields: Fields, rendered: _Rendered
) -> Constraint | None:
    """The grammar of the answer, if anything asks for one."""
    tools: Sequence[Mapping[str, Any]] = rendered.tools
    parallel = fields.flag("parallel_tool_calls", True)
    wanted = grammar.Wanted(options=rendered.options, tools=tools, parallel=parallel)
    if not wanted.needed:
        return None
    for name in ("ignore_eos", "continue_final_message"):
        if fields.flag(name, False):
            raise invalid(
                f"{name} cannot be had with a response_format or a tool_choice that "
                "holds the answer to a grammar: drop one of them",
                name,
            )
    return service.compiler.compile(grammar.lark(wanted, rendered.start_in))
