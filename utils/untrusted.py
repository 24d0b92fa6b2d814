"""Reading data that others wrote: files are judged, never believed.

JSON without the ways around its grammar, and the part of JSON Schema that the schemas of
this folder use. No sentence holds more than a few characters of the data. Imports
without torch.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import stat
from pathlib import Path

LARGEST = 2_000_000  # bytes of a file
DEEPEST = 12         # levels; the layout of recorded results needs eight
# Control characters, what turns the direction of text, halves of characters.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Malformed(ValueError):
    """Data that is not in order; the message is one sentence, without the file's name."""


def read_json(path: Path) -> dict:
    """A file's JSON, read with suspicion. Raises Malformed."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Malformed("it is not a plain file.")
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise Malformed(f"it cannot be read ({error.strerror}).") from None
    if len(raw) > LARGEST:
        raise Malformed(f"it is larger than {LARGEST // 1_000_000} MB.")
    return parse(raw)


def parse(raw: bytes) -> dict:
    """JSON without what JSON does not have (NaN, infinity), without duplicate keys, huge
    numbers and deep nesting. Raises Malformed with one sentence."""
    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant,
                          parse_float=_finite, parse_int=_short)
    except Malformed:
        raise
    except UnicodeDecodeError:
        raise Malformed("it is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"it is not JSON: line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise Malformed(f"it is nested more than {DEEPEST} levels deep.") from None
    if _deeper(data, DEEPEST):
        raise Malformed(f"it is nested more than {DEEPEST} levels deep.")
    return data


def _unique(pairs):
    found = {}
    for key, value in pairs:
        if key in found:
            raise Malformed(f"the key {brief(key)} stands twice in one object.")
        found[key] = value
    return found


def _no_constant(text):
    raise Malformed(f"{text} is not a JSON number.")


def _finite(text):
    if not math.isfinite(float(text)):
        raise Malformed(f"the number {brief(text)} is too large.")
    return float(text)


def _short(text):
    if len(text) > 18:
        raise Malformed(f"the number {brief(text)} is too large.")
    return int(text)


def _deeper(data, levels: int) -> bool:
    """Without recursion: what is measured may be nested to overflow it."""
    layer = [data]
    for _ in range(levels):
        layer = [item for node in layer if isinstance(node, dict | list)
                 for item in (node.values() if isinstance(node, dict) else node)]
    return bool(layer)


def brief(value, longest=40) -> str:
    """A value of the data as it may stand in a sentence: short, and ASCII only."""
    text = ascii(value)
    return text if len(text) <= longest else text[:longest] + "..." + "'" * isinstance(value, str)


def schema_faults(data, schema: str) -> list[str]:
    """Where `data` breaks a schema of this folder: one sentence a place."""
    for where, text in _texts(data):
        if UNPRINTABLE.search(text):
            return [f"{where or 'a key'} holds a character that cannot be printed."]
    root = _schema(schema)
    return [f"{'.'.join(where) or 'the whole'} {what}." for where, what in _faults(data, root, root)]


@functools.cache
def _schema(name: str) -> dict:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def _texts(data):
    """(place, text) of every text and key; without recursion, as `_deeper`."""
    todo = [("", data)]
    while todo:
        where, node = todo.pop()
        if isinstance(node, str):
            yield where, node
        elif isinstance(node, dict):
            yield from ((where, key) for key in node if isinstance(key, str))
            todo += [(f"{where}.{str(key)[:40]}".strip("."), item) for key, item in node.items()]
        elif isinstance(node, list):
            todo += [(f"{where}.{i}".strip("."), item) for i, item in enumerate(node)]


# Importing jsonschema takes a second and more; a test compares it with these lines.
_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
          "integer": int, "number": int | float}


def _is(data, kind: str) -> bool:
    """In Python True is an int; in JSON it is not a number."""
    return isinstance(data, _TYPES[kind]) and (kind == "boolean" or not isinstance(data, bool))


def _faults(data, schema: dict, root: dict, where=()):
    """(place, what is wrong) for the part of JSON Schema that our schemas use."""
    if "$ref" in schema:
        yield from _faults(data, root["$defs"][schema["$ref"].rpartition("/")[2]], root, where)
    if "anyOf" in schema:
        tries = [list(_faults(data, form, root, where)) for form in schema["anyOf"]]
        if all(tries):  # talk about the form that came closest: the right shape, or at least type
            yield from min(tries, key=lambda faults: (
                sum(place == where for place, _ in faults), len(faults), faults[0][1].startswith("should be")))
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(data, kind) for kind in kinds):
        yield where, f"should be {' or '.join(kinds)}"
        return
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if allowed and not any(type(data) is type(value) and data == value for value in allowed):
        yield where, f"should be {' or '.join(map(str, allowed))}"
    if isinstance(data, dict):
        yield from _object_faults(data, schema, root, where)
    elif isinstance(data, list):
        yield from _size_faults(data, schema, "Items", where)
        for number, item in enumerate(data if "items" in schema else []):
            yield from _faults(item, schema["items"], root, (*where, str(number)))
    elif isinstance(data, str):
        yield from _size_faults(data, schema, "Length", where)
        if "pattern" in schema and not re.search(schema["pattern"], data):
            yield where, f"has the value {brief(data)}, which is not allowed there"
    elif _is(data, "number"):
        if not schema.get("minimum", data) <= data <= schema.get("maximum", data):
            yield where, f"has the value {brief(data)}, which is out of range"


def _size_faults(data, schema: dict, what: str, where):
    if not schema.get(f"min{what}", 0) <= len(data) <= schema.get(f"max{what}", len(data)):
        yield where, f"has the length {len(data)}, which is not allowed there"


def _object_faults(data: dict, schema: dict, root: dict, where):
    yield from _size_faults(data, schema, "Properties", where)
    yield from ((where, f"lacks the field {name!r}") for name in schema.get("required", []) if name not in data)
    for key, item in data.items():
        yield from _faults(key, schema.get("propertyNames", {}), root, where)
        known = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        known += [form for pattern, form in schema.get("patternProperties", {}).items() if re.search(pattern, key)]
        rest = schema.get("additionalProperties", {})
        if not known and rest is False:
            yield where, f"has a field {brief(key)} that does not belong there"
        for form in known or [rest or {}]:
            yield from _faults(item, form, root, (*where, key[:80]))
