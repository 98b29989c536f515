"""What a run of attempts came to, made out from the effects and replies that pass by.

Strategies tell which messages they committed, and which failed. Where a duplicate was found has to be seen in what they read;
and whether it is one at all: after an unknown outcome a message is often found where this very run had committed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from exactlyonce.attempt import Finished
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import Begun, Effect, Together
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import Found
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Entry, Ledger, read_entity
from exactlyonce.values.identity import EntityRef

Outcome = Literal["processed", "held", "failed", "entry", "record", "stream", "number", "group"]
"""What became of a delivery: of its message; or where it was found to be a duplicate.

`entry`: in the ledger of the entity. `record`: a processed record. `stream`: the entry of a version stream. `number`: a number
that a read model has received. `group`: another copy in the same group.
"""

DUPLICATES: Final[tuple[Outcome, ...]] = ("entry", "record", "stream", "number", "group")

_PLACES: Final[Mapping[type, Outcome]] = {
    Entry: "entry",
    ColocatedRecord: "record",
    StreamEntry: "stream",
    NumberedMessage: "number",
}


class Tally:
    """What is known of a run; told of every effect and every result.

    Args:
        messages: keys of the messages that the run is for.

    Attributes:
        saved: the commit of the present attempt, once it is known to be applied.
        processed: keys of all messages known to be committed by the run.
    """

    def __init__(self, messages: Iterable[str] = ()) -> None:
        self._messages = tuple(messages)
        self._given: set[str | datetime] = set()
        self._before: set[str | datetime] = set()
        self.processed: dict[str, None] = {}
        self.begin()

    def begin(self) -> None:
        """An attempt begins, and looks at everything anew."""
        self._before |= self._given
        self._given.clear()
        self.saved: SaveEntity | SaveBatch | None = None
        self._loaded: tuple[EntityRef, Loaded] | None = None
        self._records: frozenset[str] = frozenset()
        self._beside: dict[str | None, Companion] = {}

    def note(self, effect: Effect[Any], reply: Any) -> None:
        """The attempt asked for something and was answered."""
        if isinstance(effect, Together):
            self.note(effect.first, reply[0])
            self.note(effect.second, reply[1])
        elif isinstance(effect, LoadEntity) and isinstance(reply, Loaded):
            self._loaded = (effect.entity, reply)
        elif isinstance(reply, Found):
            self._records |= reply.messages
        elif isinstance(effect, LoadCompanions) and isinstance(reply, FoundCompanions):
            self._beside |= {one.message: one for one, _ in reply.companions}
        elif isinstance(reply, Begun):
            self._given |= {reply.at, *reply.given}
        elif isinstance(effect, (SaveEntity, SaveBatch)) and isinstance(reply, Saved):
            self.saved = effect

    def end(self, result: object) -> tuple[str, ...]:
        """The attempt is over; return the keys of the messages that it is known to have committed."""
        # One that did not finish may have committed all the same, and could not publish.
        committed = result.processed if isinstance(result, Finished) else tuple(self._committed())
        self.processed.update(dict.fromkeys(committed))
        return committed

    def outcomes(self, finished: Finished) -> dict[str, Outcome]:
        """What became of each message of a run that finished.

        What an attempt of unknown outcome had committed, as the last one found, is added to `processed`.
        """
        known: dict[str, Outcome] = dict.fromkeys((key for key, _ in finished.failed), "failed")
        known |= dict.fromkeys((key for key, _ in finished.stopped), "held")
        known |= dict.fromkeys(self.processed, "processed")
        outcomes = {key: known.get(key) or self._found(key) for key in self._messages}
        self.processed.update(dict.fromkeys(key for key, one in outcomes.items() if one == "processed"))
        return outcomes

    @property
    def gaps(self) -> tuple[datetime, ...]:
        """Since when a read model that was loaded has had its gaps."""
        return tuple(one.gap_since for one in self._ledger.receptions if one.gap_since is not None)

    def _found(self, key: str) -> Outcome:
        """Where the last attempt found a message that it had not to commit."""
        if key in self._records:
            return "record"
        written = next((one for one in _companions(self.saved) if one.message == key), None)
        if written is not None:
            return "held" if _is_held(written) else "number"  # It came after its number was given up, as it notes now.
        entry = next((one for one in self._ledger.entries if one.message == key), None)
        found = self._beside.get(key) or entry
        if found is None:
            return "number"  # It came so long ago that clean-up has taken the document of its number.
        if _origin(found) not in self._before:
            return _PLACES[type(found)]
        return "held" if _is_held(found) else "processed"

    def _committed(self) -> Iterator[str]:
        """Messages in the commit of this attempt, if it is known to be applied."""
        if isinstance(self.saved, SaveEntity):
            ledger = read_entity(self.saved.entity, self.saved.document).ledger or Ledger()
            yield from (entry.message for entry in ledger.entries if _origin(entry) in self._given)
        for one in _companions(self.saved):
            if one.message is not None and _origin(one) in self._given and not _is_held(one):
                yield one.message

    @property
    def _ledger(self) -> Ledger:
        if self._loaded is None:
            return Ledger()
        entity, loaded = self._loaded
        return read_entity(entity, loaded.document).ledger or Ledger()


def _origin(one: Entry | Companion) -> str | datetime:
    """What tells which attempt wrote it: its transaction; of the document of a number the time, as it has no transaction."""
    return one.at if isinstance(one, NumberedMessage) else one.tx


def _is_held(one: Entry | Companion) -> bool:
    return isinstance(one, NumberedMessage) and one.held is not None


def _companions(saved: SaveEntity | SaveBatch | None) -> tuple[Companion, ...]:
    """The companions that a commit wrote."""
    return (*saved.create, *(one for one, _ in saved.replace)) if isinstance(saved, SaveBatch) else ()
