"""Damage to a history at rest, by chance: each kind breaks one promise, where there is something to break."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER, Mark, split, written
from exactlyonce.values.envelope import EntityRef, message_key
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import Stored

Documents = list[Stored]


def _told(stored: Documents, kinds: tuple[str, ...] = ("processed", "entry")) -> Documents:
    """Companions of some kinds."""
    return [item for item in stored if item.document.get(KIND) in kinds]


def _ledgers(stored: Documents) -> list[dict[str, Any]]:
    """Ledgers with marks."""
    entities = (item for item in stored if item.place != LIBRARY and KIND not in item.document)
    return [entity.document[LEDGER] for entity in entities if entity.document[LEDGER].get("marks")]


def _copy(stored: Stored, random: Random, **changes: Any) -> Stored:
    return replace(stored, document={**stored.document, "id": f"{random.random()}", **changes})


def applied_again(stored: Documents, random: Random) -> None:
    """A message once more, as the next version."""
    if told := _told(stored):
        one = random.choice(told)
        stored.append(_copy(one, random, tx="again", version=one.document["version"] + 1))


def marked_again(stored: Documents, random: Random) -> None:
    """A second mark of a message."""
    if ledgers := _ledgers(stored):
        ledger = random.choice(ledgers)
        marks = split(ledger["marks"])
        mark = Mark.read(random.choice(marks))
        ledger["marks"] = written((*marks, mark._replace(since=mark.since + random.randint(1, 9)).text))
        ledger["version"] += 1


def owned_twice(stored: Documents, random: Random) -> None:
    """Another message made the same version."""
    if told := _told(stored):
        number = random.getrandbits(32)
        one = random.choice(told)
        stored.append(_copy(one, random, tx=f"other-{number}", message=f"web/other-{number}", outputs=[]))


def recorded_otherwise(stored: Documents, random: Random) -> None:
    """A second record of a commit, with another digest."""
    if told := [item for item in _told(stored) if item.document["outputs"]]:
        stored.append(_copy(random.choice(told), random, digest="another"))


def seen_without_commit(stored: Documents, random: Random) -> None:
    """A board saw a message of a player's that no commit sent."""
    seen = [item for item in _told(stored, ("processed", "entry", "numbered")) if '"board' in item.document["entity"]]
    senders = [
        (item.place, item.document["id"]) for item in stored if "player" in item.place and KIND not in item.document
    ]
    if seen and senders:
        one, (type, name) = random.choice(seen), random.choice(senders)
        source = EntityRef(type, (name,), name).source
        ghost = message_key(source, f"{random.getrandbits(128):032x}")
        stored[stored.index(one)] = replace(one, document={**one.document, "message": ghost})


def _released(stored: Documents) -> Documents:
    return [item for item in _told(stored, ("numbered",)) if item.document["held"] is None]


def passed_over(stored: Documents, random: Random) -> None:
    """Nothing tells of a number any more."""
    if released := _released(stored):
        stored.remove(random.choice(released))


def shared_number(stored: Documents, random: Random) -> None:
    """Two messages were taken with one number."""
    if released := _released(stored):
        one = random.choice(released)
        source, _ = one.document["message"].split("/")
        stored.append(_copy(one, random, message=f"{source}/other-{random.getrandbits(32)}"))


DAMAGES: Mapping[str, Callable[[Documents, Random], None]] = {
    item.__name__: item
    for item in (
        applied_again,
        marked_again,
        owned_twice,
        recorded_otherwise,
        seen_without_commit,
        passed_over,
        shared_number,
    )
}
