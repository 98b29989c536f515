"""What the world may answer to an effect: every reply the fault model allows, with what each does to the store.

Rules of reading (Session consistency): a read with a token returns that version or a later one; a read of the library's
partition without one returns any version. Writes are judged at the end of the log. A write has four outcomes, applied or not
and answered or not; and an unanswered one may take effect at any later time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Final

from exactlyonce.drivers.overdue import divided
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteParked,
    DeleteProcessed,
    DeleteStaged,
    FindProcessed,
    Found,
    FoundParked,
    FoundStaged,
    HasRecords,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    WriteProcessed,
)
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from verification.checker.handler import key_of_number, sent_again, told_by
from verification.checker.mentions import Write, described
from verification.checker.scenarios import AT, PLACES, TICK, Scenario
from verification.checker.store import NOW, Library, Store, Stores, Version, entity_number, position_of, token_at
from verification.checker.writes import Answer, Writes

_PRESENT: Final = datetime.fromtimestamp(NOW, timezone.utc)
STALE: Final = PLACES["stale"]
LOST: Final = PLACES["unknown"]
REPEATED: Final = PLACES["repeated"]


OVERDUE: Final = "an output was too old to be published"


class World:
    """Answers effects for one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.stores = Stores()
        self.writes = Writes(
            self.stores,
            keeps_versions=bool(scenario.budget.stale),
            linearizable=scenario.linearizable,
            single=frozenset(key_of_number(number) for number, copies in enumerate(scenario.copies) if copies == 1),
            deletes=key_of_number(len(scenario.copies) - 1) if scenario.deletes else None,
            logs_parked=scenario.logs_parked,
            dates=scenario.ages is not None,
        )
        self._stale = bool(scenario.budget.stale)
        self._ages = scenario.ages
        self._linearizable = scenario.linearizable
        self._delayed = scenario.delayed > 0 and not scenario.linearizable

    def answers(self, effect: Effect[Any], store: Store) -> Iterator[Answer]:
        """Every answer to an effect."""
        match effect:
            case LoadEntity():
                yield from self._load(effect, store)
            case FindProcessed():
                yield from self._find(effect, store)
            case LoadStaged():
                yield from self._load_staged(effect, store)
            case HasRecords():
                library = store.libraries[entity_number(effect.entity)]
                yield Answer(any(id.startswith("processed:") for id in library.now), store, said="looks for any record")
            case LoadParked():
                yield from self._load_parked(effect, store)
            case Publish():
                yield from self._publish(effect, store)
            case DeleteStaged() | DeleteProcessed() | DeleteParked():
                yield self.land(effect, store)
                yield Answer(None, store, LOST, said=f"{described(effect)}, which is lost")
                if self._delayed:
                    yield Answer(None, store, LOST, effect, said=f"{described(effect)}, which will arrive later")
            case SaveEntity() | WriteProcessed() | Stage() | Park():
                yield from self._write(effect, store)
            case _:
                raise TypeError(effect)

    def land(self, write: Write, store: Store) -> Answer:
        """A write takes effect, if its condition holds."""
        return self.writes.applied(write, store)

    def _load(self, effect: LoadEntity, store: Store) -> Iterator[Answer]:
        entity = store.entities[entity_number(effect.entity)]
        oldest = max(position_of(effect.token), entity.first)
        for position in range(entity.newest, oldest - 1, -1):
            version = entity.versions[position - entity.first]
            token = token_at(position)
            loaded = Loaded(version.document, version.etag, _written(version) if version.document else 0, token)
            if position == entity.newest:
                yield Answer(loaded, store, said=f"loads version {position}")
            else:
                said = f"loads version {position}, though {entity.newest} is the newest"
                yield Answer(loaded, store, STALE, said=said, witnessed="stale load")
        if self._stale:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind")
        yield self._unread(store)

    def _find(self, effect: FindProcessed, store: Store) -> Iterator[Answer]:
        library = store.libraries[entity_number(effect.entity)]
        yield self._unread(store)
        if self._stale and effect.token is not None:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind", witnessed="a replica was behind")
        for position in self._views(effect.token, library):
            view = library.view(position)
            found = frozenset(message for message in effect.messages if f"processed:{message}" in view)
            said = f"finds {len(found)} of {len(effect.messages)} records in view {position} of {library.end}"
            seen = "duplicate found its record" if found else None
            token = token_at(0 if self._linearizable else position)
            yield Answer(Found(found, token), store, said=said, witnessed=seen, aged=position < library.end)

    def _load_staged(self, effect: LoadStaged, store: Store) -> Iterator[Answer]:
        library = store.libraries[entity_number(effect.entity)]
        yield self._unread(store)
        if self._stale and effect.token is not None:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind")
        for position in self._views(effect.token, library):
            view = library.view(position)
            found = tuple(view[f"staged:{tx}"] for tx in effect.transactions if f"staged:{tx}" in view)
            gone = len(found) < len(effect.transactions)
            said = f"reads staged outputs: {len(found)} of {len(effect.transactions)} are there"
            seen = "staged outputs were gone" if gone else None
            yield Answer(FoundStaged(found), store, said=said, witnessed=seen, aged=position < library.end)

    def _load_parked(self, effect: LoadParked, store: Store) -> Iterator[Answer]:
        library = store.libraries[entity_number(effect.entity)]
        yield self._unread(store)
        if self._stale and effect.token is not None:
            yield Answer(BEHIND, store, STALE, said="asks a replica that is behind")
        views = [
            library.view(position).get(f"parked:{effect.message}") for position in self._views(effect.token, library)
        ]
        for parked in dict.fromkeys(reversed(views)):
            aged = parked != views[-1]
            said = f"reads {'no' if parked is None else 'the'} parked {effect.message}{', in an older view' if aged else ''}"
            etag, message = (None, None) if parked is None else parked
            read_at = None if parked is None else _PRESENT
            yield Answer(FoundParked(message, etag, read_at), store, said=said, aged=aged)

    @staticmethod
    def _unread(store: Store) -> Answer:
        """A read that fails."""
        return Answer(UNKNOWN, store, LOST, said="gets no answer to a read")

    def _views(self, token: str | None, library: Library) -> range:
        """Positions that a read of the library may see."""
        return range(library.end if self._linearizable else position_of(token), library.end + 1)

    def _publish(self, effect: Publish, store: Store) -> Iterator[Answer]:
        again = tuple(key for key in map(sent_again, effect.outputs) if key is not None)
        if again:
            arrived = self.stores.changed(store, requeued=store.requeued | frozenset(again))
            said = f"sends {', '.join(again)} again"
            yield Answer(PUBLISHED, arrived, said=said, again=again, witnessed="a parked message was sent again")
            yield Answer(UNKNOWN, arrived, LOST, said=f"{said}; the reply is lost", again=again)
            yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")
            return
        outputs, overdue = self._divided(effect, store)
        keys = tuple(told_by(output)[0] for output in outputs)
        violation = self.judged(outputs, store) or self._late(effect, outputs, store)
        arrived = self.stores.changed(
            store, published=store.published | frozenset(keys), overdue=store.overdue | frozenset(overdue)
        )
        said = f"publishes {', '.join(output.id for output in outputs) or 'nothing'}"
        said += f" and parks what {', '.join(overdue)} owes, since it is too old" if overdue else ""
        if overdue:
            yield Answer(PUBLISHED, arrived, violation=violation, said=said, arrivals=keys, witnessed=OVERDUE)
            yield Answer(UNKNOWN, arrived, LOST, None, violation, f"{said}; the reply is lost", None, keys)
            yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")
            return
        yield Answer(PUBLISHED, arrived, violation=violation, said=said, arrivals=keys)
        if not self._linearizable:
            yield Answer(UNKNOWN, arrived, LOST, None, violation, f"{said}; the reply is lost", None, keys)
        yield Answer(UNKNOWN, store, LOST, said=f"{said}, which fails")

    def _divided(self, effect: Publish, store: Store) -> tuple[tuple[Output, ...], tuple[str, ...]]:
        """What is to be published, and keys of messages whose outputs are too old for that and are parked."""
        if self._ages is None or not self._ages.limits:
            return effect.outputs, ()
        kept, _ = divided(effect, self._ages.lifetimes, AT + store.now * TICK)
        return kept, tuple(told_by(output)[0] for output in effect.outputs if output not in kept)

    def _late(self, effect: Publish, outputs: tuple[Output, ...], store: Store) -> str | None:
        """What is wrong with the age of what was owed and is published: its receiver must be able to judge it."""
        if self._ages is None or effect.owed is None:
            return None
        now = AT + store.now * TICK
        for output in outputs:
            time = Envelope.read(output.envelope.text).time
            if output.order is None and time is not None and now - time > self._ages.lifetimes.oldest_judged(now):
                return f"nothing_lost: {output.id} is published when nobody can judge it any more"
        return None

    def judged(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        """What is wrong with publishing these outputs."""
        for output in outputs:
            key, history = told_by(output)
            if (key, history) in store.committed:
                continue
            if any(key == committed for committed, _ in store.committed):
                return f"consistent_state_and_output: another output of {key} is published than was committed"
            return f"no_ghost_output: {key} is published, but was never committed"
        return None

    def _write(self, effect: Write, store: Store) -> Iterator[Answer]:
        applied = self.land(effect, store)
        yield applied
        conflict = isinstance(applied.reply, Conflict)
        if not conflict and not self._linearizable:
            said, after, violation = applied.said, applied.store, applied.violation
            yield Answer(UNKNOWN, after, LOST, None, violation, f"{said}; the reply is lost")
            if isinstance(effect, SaveEntity | Stage):
                reply = self.land(effect, after).reply
                twice = f"{said}; sent twice, so the reply says conflict"
                yield Answer(reply, after, REPEATED, None, violation, twice, "own success seen as a conflict")
        yield Answer(UNKNOWN, store, LOST, said=f"{described(effect)}, which is lost")
        if self._delayed:
            yield Answer(UNKNOWN, store, LOST, effect, said=f"{described(effect)}, which will arrive later")


def _written(version: Version) -> int:
    """The server's time of writing a version, in seconds."""
    return NOW + int(version.tick * TICK.total_seconds())
