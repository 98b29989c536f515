"""Clean-up of companions for tests: what a job lists, and what is left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from exactlyonce import Colocated, VersionStream
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.entity import Loaded
from exactlyonce.handling.entities import Entity
from exactlyonce.records.companions import id_of
from tests import samples
from tests.asking import clean_by
from tests.samples import deposit
from tests.unit.protocols import sourcing
from tests.unit.script import Played, Script

COLOCATED, STREAM = Colocated(), VersionStream(snapshot_every=3)
RETENTION = timedelta(days=30)
NOTHING = Loaded(None, None, 0, "0:-1#0")
Listed = tuple[tuple[str, str], ...]


def listed(script: Script, age: timedelta = timedelta(0)) -> Listed:
    """What a job lists: all companions that were written so long ago, or longer."""
    before = (script.at - age).timestamp()
    versions = [script._partition.newest(id_of(script.entity, companion)) for companion in script.companions]
    return tuple((version.id, version.etag) for version in versions if version.timestamp <= before)


def cleaned(
    script: Script, protocol: str, candidates: Listed | None = None, replies: dict[Any, Any] | None = None
) -> Played:
    candidates = listed(script) if candidates is None else candidates
    return script.play(clean_by(protocol, script.entity, candidates, Memory()), replies)


def processed(strategy: Any, *ids: str, type: Entity[Any] | None = None) -> Script:
    """An account that processed these messages, one after the other."""
    script = Script()
    for id in ids:
        script.play(sourcing.attempt(type or samples.accounts(strategy), deposit(id)))
    return script


def left(script: Script) -> list[str]:
    """Ids of the messages of which something is left."""
    return [str(companion.message).removeprefix("web/") for companion in script.companions]
