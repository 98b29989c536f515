"""Entities, messages and commands as people write them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

from spark_jobs.report.contents import Mode

_OPERATE: Final = "python -m exactlyonce.cli"
_LAST: Final = 10
"""Audits of which the console names the number of findings."""
_INSPECT: Final = f"{_OPERATE} inspect {{entity}}"
_NEXT: Final[Mapping[str, str]] = {
    "orphan_staged": "python -m spark_jobs.cleanup --config job.json",
    "output_lost": f"{_OPERATE} parked",
    "owing_too_long": f"{_OPERATE} sweep --type {{type}} --older-than 0",
    "request_left": "python -m spark_jobs.cleanup --config job.json",
    "reply_awaited": f"{_OPERATE} parked",
    "sequence_gap": f"{_OPERATE} tend {{entity}}",
    "stuck_reader": f"{_OPERATE} tend {{entity}}",
}
"""The command to run next, by rule; of the others, `inspect`."""


def entity_name(key: str) -> str:
    """An entity in words: type, id, and the partition where it differs from the id. Text that is no key stays.

    >>> entity_name('["range","game-1","game-1"]'), entity_name('["order","eu",7,"o-1"]')
    ('range game-1', 'order o-1 in eu, 7')
    """
    parts = _parts(key)
    if parts is None:
        return key
    type, *partition, id = parts
    where = "" if partition == [id] else f" in {', '.join(map(str, partition))}"
    return f"{type} {id}{where}"


def message_name(key: str) -> str:
    """A message in words: id and source.

    >>> message_name("web/m%2F42")
    'm/42 from web'
    """
    source, sign, id = key.partition("/")
    return f"{unquote(id)} from {unquote(source)}" if sign else key


def command_after(rule: str, entity: str) -> str | None:
    """The command to run next after a finding; None without an entity that a command could name.

    >>> command_after("two_owners", '["range","game-1","game-1"]')
    'python -m exactlyonce.cli inspect range game-1'
    """
    parts = _parts(entity)
    if parts is None:
        return None
    type, *partition, id = parts
    key = id if partition == [id] else json.dumps([*partition, id], ensure_ascii=False)
    return _NEXT.get(rule, _INSPECT).format(type=shlex.quote(type), entity=f"{shlex.quote(type)} {shlex.quote(key)}")


def trend_sentence(trend: Sequence[tuple[datetime, Mode, int]]) -> str:
    """The numbers of findings of the last audits, the oldest first."""
    numbers = (f"{number} (full)" if mode == "full" else f"{number}" for _, mode, number in trend[-_LAST:])
    return f"Findings of the last audits, the newest last: {', '.join(numbers)}."


def _parts(key: str) -> list[Any] | None:
    """Type, values of the partition key, and id; None if this is no key of an entity."""
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(parts, list) and len(parts) > 2 and isinstance(parts[0], str) and isinstance(parts[-1], str)  # noqa: PLR2004
    return parts if whole else None
