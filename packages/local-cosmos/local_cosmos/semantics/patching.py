"""Partial update of a document: the operations add, set, replace, remove, incr and move, in order, all or none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from local_cosmos.semantics.errors import bad_request
from local_cosmos.values import JsonObject

MOST_OPERATIONS: Final = 10
_END = "-"


def patched(document: JsonObject, operations: object) -> JsonObject:
    """Apply the operations to `document`, which is changed in place: give it a copy of its own.

    Raises:
        RefusedError: 400; the patch is malformed or does not fit the document.
    """
    if not isinstance(operations, list) or not operations:
        raise bad_request("A patch needs at least one operation.")
    if len(operations) > MOST_OPERATIONS:
        raise bad_request(f"A patch may have {MOST_OPERATIONS} operations; this one has {len(operations)}.")
    for operation in operations:
        _apply(document, operation)
    return document


def _apply(document: JsonObject, operation: object) -> None:
    if not isinstance(operation, dict):
        raise bad_request("An operation of a patch is a JSON object.")
    path = _steps(operation.get("path"))
    value = operation.get("value")
    match str(operation.get("op")).lower():
        case "add":
            _put(document, path, value, insert=True)
        case "set":
            _put(document, path, value, insert=False)
        case "replace":
            _get(document, path)
            _put(document, path, value, insert=False)
        case "remove":
            _remove(document, path)
        case "incr":
            _increment(document, path, value)
        case "move":
            _move(document, _steps(operation.get("from")), path)
        case other:
            raise bad_request(f"The patch operation {other!r} is not supported.")


def _steps(path: object) -> list[str]:
    if not isinstance(path, str) or not path.startswith("/") or path == "/":
        raise bad_request(f"The patch path {path!r} is not valid.")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _get(document: JsonObject, path: Sequence[str]) -> Any:
    value: Any = document
    for step in path:
        match value:
            case dict() if step in value:
                value = value[step]
            case list():
                value = value[_index(step, len(value) - 1, path)]
            case _:
                raise bad_request(f"The patch path /{'/'.join(path)} does not exist in the item.")
    return value


def _put(document: JsonObject, path: Sequence[str], value: Any, *, insert: bool) -> None:
    parent, last = _get(document, path[:-1]), path[-1]
    match parent:
        case dict():
            parent[last] = value
        case list() if last == _END:
            parent.append(value)
        case list() if insert:
            parent.insert(_index(last, len(parent), path), value)
        case list():
            parent[_index(last, len(parent) - 1, path)] = value
        case _:
            raise bad_request(f"The patch path /{'/'.join(path)} leads through a value that has no properties.")


def _remove(document: JsonObject, path: Sequence[str]) -> Any:
    value = _get(document, path)
    parent, last = _get(document, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return value


def _increment(document: JsonObject, path: Sequence[str], by: Any) -> None:
    parent, last = _get(document, path[:-1]), path[-1]
    absent = isinstance(parent, dict) and last not in parent
    current = 0 if absent else _get(document, path)
    if not _is_number(current) or not _is_number(by):
        raise bad_request(f"The patch increments /{'/'.join(path)} with something that is not a number.")
    _put(document, path, current + by, insert=False)


def _move(document: JsonObject, source: Sequence[str], target: Sequence[str]) -> None:
    if list(target[: len(source)]) == list(source):
        raise bad_request("A patch cannot move a value into itself.")
    _put(document, target, _remove(document, source), insert=True)


def _index(step: str, highest: int, path: Sequence[str]) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", step) or int(step) > highest:
        raise bad_request(f"The patch path /{'/'.join(path)} has no valid array index at {step!r}.")
    return int(step)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
