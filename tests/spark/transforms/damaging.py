"""Damage to a history at rest, by chance: each kind breaks one promise, where there is something to break."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

from exactlyonce.records.companions import KIND
from exactlyonce.records.ledger import LEDGER
from exactlyonce.values.identity import EntityRef, message_key
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import Stored

Documents = list[Stored]


def _told(stored: Documents, kinds: tuple[str, ...] = ("processed", "entry")) -> Documents:
    """Documents, but entities', of some kinds."""
    return [one for one in stored if one.document.get(KIND, one.document.get("kind")) in kinds]


def _entries(stored: Documents) -> list[tuple[EntityRef, dict[str, Any]]]:
    found = []
    for one in stored:
        if one.place != LIBRARY and KIND not in one.document:
            partition = tuple(one.document[path[1:]] for path in one.paths)
            ref = EntityRef(one.place, partition, one.document["id"])
            found += [(ref, entry) for entry in one.document[LEDGER]["entries"]]
    return found


def _copy(one: Stored, random: Random, **changes: Any) -> Stored:
    return replace(one, document={**one.document, "id": f"{random.random()}", **changes})


def applied_again(stored: Documents, random: Random) -> None:
    """A message once more, as the next version."""
    if told := _told(stored):
        one = random.choice(told)
        stored.append(_copy(one, random, tx="again", version=one.document["version"] + 1))


def owned_twice(stored: Documents, random: Random) -> None:
    """Another message made the same version."""
    if told := _told(stored):
        number = random.getrandbits(32)
        one = random.choice(told)
        stored.append(_copy(one, random, tx=f"other-{number}", message=f"web/other-{number}", outputs=[]))


def recorded_otherwise(stored: Documents, random: Random) -> None:
    """A record beside its entry, with another digest."""
    recorded = {(one.document["entity"], one.document["message"]) for one in _told(stored)}
    alone = [
        (ref, entry)
        for ref, entry in _entries(stored)
        if entry["outputs"] and (ref.key, entry["message"]) not in recorded
    ]
    if alone:
        ref, entry = random.choice(alone)
        kept = {name: entry[name] for name in ("message", "tx", "version", "at", "outputs")}
        record = {"entity": ref.key, **kept, "digest": "another", "kind": "processed", "schema": 1}
        system = {"id": f"{random.random()}", "pk": ref.key, "_etag": '"1"', "_ts": stored[0].document["_ts"]}
        stored.append(Stored(LIBRARY, {**record, **system}))


def seen_without_commit(stored: Documents, random: Random) -> None:
    """A board saw a message of a player's that no commit sent."""
    seen = [one for one in _told(stored, ("processed", "entry", "numbered")) if '"board"' in one.document["entity"]]
    senders = [one.document["id"] for one in stored if one.place == "player" and KIND not in one.document]
    if seen and senders:
        one, name = random.choice(seen), random.choice(senders)
        source = EntityRef("player", (name,), name).source
        ghost = message_key(source, str(UUID(int=random.getrandbits(128), version=4)))
        stored[stored.index(one)] = replace(one, document={**one.document, "message": ghost})


def _released(stored: Documents) -> Documents:
    return [one for one in _told(stored, ("numbered",)) if one.document["held"] is None]


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
    one.__name__: one
    for one in (applied_again, owned_twice, recorded_otherwise, seen_without_commit, passed_over, shared_number)
}
