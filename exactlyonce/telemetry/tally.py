"""The tally of a run of attempts: the outcome of each delivery, derived from effects and replies.

Strategies report committed and failed messages. Only replies to reads show the place of a duplicate, and whether it is a
duplicate: after an unknown outcome a message is often found where this run itself committed it. An entry in an outbox names its
transaction. A mark has none; so it counts as this run's if a save of this run, of unknown outcome, had the same mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from exactlyonce.effects.attempt import Finished
from exactlyonce.effects.companions import FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Begun, Effect, Together
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import FoundPages, OpenNumbers
from exactlyonce.records.companions import ColocatedRecord, Companion, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import OUTBOX, Ledger, Page, by_hash, read_entity
from exactlyonce.values.envelope import EntityRef, message_hash

Outcome = Literal["processed", "held", "failed", "ledger", "page", "record", "stream", "number", "group"]
"""The outcome of a delivery, or the place of proof for a duplicate.

`ledger`: by a mark, or an entry, in the entity's ledger. `page`: by a mark in a page. `record`: in a co-located record.
`stream`: in a version stream. `number`: by a number that a read model has received. `group`: by another copy in the same group.
"""

DUPLICATES: Final[tuple[Outcome, ...]] = ("ledger", "page", "record", "stream", "number", "group")

_PLACES: Final[Mapping[type, Outcome]] = {
    ColocatedRecord: "record",
    StreamEntry: "stream",
    NumberedMessage: "number",
}


class Tally:
    """The known facts of a run, from all of its effects and results.

    Args:
        messages: keys of the run's messages.

    Attributes:
        saved: the commit of the present attempt, once it is certainly applied.
        processed: keys of all messages that the run certainly committed.
    """

    def __init__(self, messages: Iterable[str] = ()) -> None:
        self._messages = tuple(messages)
        self._given: set[str | datetime] = set()
        self._before: set[str | datetime] = set()
        self._uncertain: set[str] = set()
        self.processed: dict[str, None] = {}
        self.begin()

    def begin(self) -> None:
        """Start an attempt."""
        self._before |= self._given
        self._given.clear()
        self.saved: SaveEntity | SaveBatch | None = None
        self._loaded: tuple[EntityRef, Loaded] | None = None
        self._opened: tuple[str, ...] = ()
        self._pages: tuple[Page, ...] = ()
        self._companions: dict[str | None, Companion] = {}

    def note(self, effect: Effect[Any], reply: Any) -> None:
        """Note an effect of the attempt and its reply."""
        if isinstance(effect, Together):
            self.note(effect.first, reply[0])
            self.note(effect.second, reply[1])
        elif isinstance(effect, LoadEntity) and isinstance(reply, Loaded):
            self._loaded = (effect.entity, reply)
        elif isinstance(effect, LoadCompanions) and isinstance(reply, FoundCompanions):
            self._companions |= {item.message: item for item, _ in reply.companions}
        elif isinstance(reply, FoundPages):
            self._pages = reply.pages
        elif isinstance(reply, Begun):
            self._given |= {reply.at, *reply.given}
            self._opened = effect.messages if isinstance(effect, OpenNumbers) else ()
        elif isinstance(effect, (SaveEntity, SaveBatch)) and isinstance(reply, Saved):
            self.saved = effect
        elif isinstance(effect, SaveEntity) and reply is UNKNOWN:
            self._uncertain |= set(self._marks_in(effect).values())

    def end(self, result: object) -> tuple[str, ...]:
        """End the attempt; return the keys of the messages that it certainly committed."""
        # An attempt that did not finish may have committed, and failed to publish.
        committed = result.processed if isinstance(result, Finished) else tuple(self._committed())
        self.processed.update(dict.fromkeys(committed))
        return committed

    def outcomes(self, finished: Finished) -> dict[str, Outcome]:
        """The outcome of each message of a finished run.

        Messages that the last attempt found committed by an earlier attempt of unknown outcome are added to `processed`.
        """
        reported: dict[str, Outcome] = dict.fromkeys((key for key, _ in finished.failed), "failed")
        reported |= dict.fromkeys((key for key, _ in finished.stopped), "held")
        reported |= dict.fromkeys(self.processed, "processed")
        outcomes = {key: reported.get(key) or self._found(key) for key in self._messages}
        self.processed.update(dict.fromkeys(key for key, item in outcomes.items() if item == "processed"))
        return outcomes

    @property
    def gaps(self) -> tuple[datetime, ...]:
        """The start times of the gaps of the loaded read model."""
        return tuple(reception.gap_since for reception in self._ledger.receptions if reception.gap_since is not None)

    def _found(self, key: str) -> Outcome:
        """Where the last attempt found a message committed before."""
        written = next((item for item in _companions(self.saved) if item.message == key), None)
        if written is not None:
            return "held" if _is_held(written) else "number"  # Its number was skipped before it arrived.
        companion = self._companions.get(key)
        if companion is None:
            # Without companions it is an outbox; or clean-up has deleted the document of the number.
            return self._marked(message_hash(key)) if self._ledger.protocol == OUTBOX else "number"
        if _origin(companion) not in self._before:
            return _PLACES[type(companion)]
        return "held" if _is_held(companion) else "processed"

    def _marked(self, hash: str) -> Outcome:
        """Where an outbox has a message. A message that only the process remembers was not loaded, and is in its ledger."""
        ledger = self._ledger
        entry = next((item for item in ledger.outbox if item.cause == hash), None)
        mark = by_hash(ledger.marks).get(hash)
        if mark in self._uncertain or (entry is not None and entry.tx in self._before):
            return "processed"
        in_page = mark is None and any(hash in by_hash(page.marks) for page in self._pages)
        return "page" if in_page else "ledger"

    def _marks_in(self, save: SaveEntity) -> dict[str, str]:
        """The marks of messages in a save of this attempt, by message key."""
        marks = by_hash((read_entity(save.entity, save.document).ledger or Ledger()).marks) if self._opened else {}
        return {key: mark for key in self._opened if (mark := marks.get(message_hash(key))) is not None}

    def _committed(self) -> Iterator[str]:
        """Messages in the commit of this attempt, if it was certainly applied."""
        if isinstance(self.saved, SaveEntity):
            yield from self._marks_in(self.saved)
        for companion in _companions(self.saved):
            if companion.message is not None and _origin(companion) in self._given and not _is_held(companion):
                yield companion.message

    @property
    def _ledger(self) -> Ledger:
        if self._loaded is None:
            return Ledger()
        entity, loaded = self._loaded
        return read_entity(entity, loaded.document).ledger or Ledger()


def _origin(companion: Companion) -> str | datetime:
    """The mark of the attempt that wrote a companion: the transaction, or the time for the document of a number."""
    return companion.at if isinstance(companion, NumberedMessage) else companion.tx


def _is_held(companion: Companion) -> bool:
    return isinstance(companion, NumberedMessage) and companion.held is not None


def _companions(saved: SaveEntity | SaveBatch | None) -> tuple[Companion, ...]:
    """The companions that a commit wrote."""
    return (*saved.create, *(item for item, _ in saved.replace)) if isinstance(saved, SaveBatch) else ()
