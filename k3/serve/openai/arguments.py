"""The grammar of a tool call: the arguments that its JSON schema declares, as XTML."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from k3.data.xtml.segments import escape
from k3.data.xtml.values import TYPES

# Spaces and line ends between the parts of JSON, but not without end.
GUIDANCE = {"whitespace_pattern": "[ \\n\\t]{0,32}"}
MOST_REFERENCES = 16


def call(place: int, tool: Mapping[str, Any]) -> Iterator[str]:
    """The rules `call_{place}` and those it needs."""
    function = tool["function"]
    schema = function.get("parameters")
    schema = schema if isinstance(schema, Mapping) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    names = []
    for number, (key, wanted) in enumerate(properties.items()):
        rule = f"arg_{place}_{number}"
        names.append(rule if key in required else f"{rule}?")
        yield f"{rule}: {_argument(_quoted(escape(key)), wanted, schema)}"
    extra = schema.get("additionalProperties", not properties)
    if extra is not False:
        names.append(f"more_{place}*")
        wanted = extra if isinstance(extra, Mapping) else {}
        yield f"more_{place}: {_argument('KEY', wanted, schema)}"
    head = _quoted(f'call tool="{escape(function["name"])}" index="')
    body = " ".join(names)
    yield (
        f'call_{place}: <|open|> {head} INDEX "\\"" <|sep|> {body} '
        '<|close|> "call" <|sep|>'
    )


def schema_of(wanted: Any, root: Mapping[str, Any]) -> str:
    """The grammar of JSON for a schema; `root` holds what its references name."""
    if not isinstance(wanted, Mapping):
        # true and false are schemas; anything else is refused by the compiler.
        return f"%json {json.dumps(wanted)}"
    found = {**wanted, "x-guidance": GUIDANCE}
    for place in ("$defs", "definitions"):
        if place in root:
            found.setdefault(place, root[place])
    return f"%json {json.dumps(found)}"


def _argument(key: str, wanted: Any, root: Mapping[str, Any]) -> str:
    options = " | ".join(
        f'"type=\\"{name}\\"" <|sep|> {value}' for name, value in _values(wanted, root)
    )
    return (
        f'<|open|> "argument key=\\"" {key} "\\" " ({options}) '
        '<|close|> "argument" <|sep|>'
    )


def _values(wanted: Any, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each type that the value may have, with the grammar of its body."""
    found = _resolved(wanted, root)
    for key in ("anyOf", "oneOf"):
        if isinstance(found, Mapping) and isinstance(found.get(key), list):
            for each in found[key]:
                yield from _values(each, root)
            return
    if not isinstance(found, Mapping):
        found = {}
    if isinstance(found.get("enum"), list) or "const" in found:
        yield from _listed(found.get("enum", [found.get("const")]))
        return
    types = found.get("type", list(TYPES))
    for name in types if isinstance(types, list) else [types]:
        if name == "string":
            yield "string", _string(found)
        elif name == "null":
            yield "null", '"null"'
        else:
            yield (
                "number" if name == "integer" else str(name),
                schema_of({**found, "type": name}, root),
            )


def _listed(values: list[Any]) -> Iterator[tuple[str, str]]:
    for value in values:
        if isinstance(value, str):
            yield "string", _quoted(value) if value else '""'
        else:
            yield _type(value), schema_of({"const": value}, {})


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds: dict[type, str] = {list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), "number")


def _string(wanted: Mapping[str, Any]) -> str:
    """Raw text; lengths count, patterns and formats do not."""
    least, most = wanted.get("minLength", 0), wanted.get("maxLength", "")
    if not isinstance(least, int) or (least == 0 and most == ""):
        return "TEXT"
    return f"/(.|\\n){{{least},{most}}}/"


def _resolved(wanted: Any, root: Mapping[str, Any]) -> Any:
    """Follow references into the schema's own definitions."""
    for _ in range(MOST_REFERENCES):
        name = wanted.get("$ref") if isinstance(wanted, Mapping) else None
        if not isinstance(name, str) or not name.startswith("#/"):
            return wanted
        wanted = root
        for part in name[2:].split("/"):
            wanted = wanted.get(part, {}) if isinstance(wanted, Mapping) else {}
    return {}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
