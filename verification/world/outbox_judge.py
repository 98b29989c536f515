"""What is wrong with a commit of the outbox, with what is published, and with an acknowledgement; and when all is done."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cached_property

from exactlyonce.records.ledger import Entry
from exactlyonce.records.outputs import Output, digest
from verification.world.judge import Commit, Committed, Judge
from verification.world.outbox_handler import (
    CANCELLED,
    call_of,
    callers,
    cancellers,
    content_of,
    digest_of,
    grown,
    keepers,
    release_of,
    released_by,
    said_on,
)
from verification.world.scenario import AT
from verification.world.store import Entity, Library, Store, history_of, ledger_of

OVERWRITTEN = "serial_execution: a commit was overwritten by one that did not know of it"


class OutboxJudge(Judge):
    """Judges what happens in one scenario of the outbox. `committed` has the history that each message was handled on."""

    @cached_property
    def _chained(self) -> tuple[int, ...]:
        """Messages whose outputs have numbers."""
        return tuple(one for one in range(len(self.keys)) if self.scenario.receiver(one) is not None)

    @cached_property
    def _same(self) -> Mapping[str, frozenset[str]]:
        """Keys of messages that are the same output under other numbers, by the key of each."""
        same: dict[str, frozenset[str]] = {}
        for one in self._chained:
            numbers = range(1, len(self._chained) + 1)
            keys = frozenset(
                self.keys[fed] for number in numbers if (fed := self.scenario.fed(one, number)) is not None
            )
            same.update({key: keys - {key} for key in keys})
        return same

    @cached_property
    def _callers(self) -> frozenset[str]:
        """Keys of messages whose outputs are calls."""
        return callers(self.scenario)

    @cached_property
    def _keepers(self) -> frozenset[str]:
        """Keys of messages whose outputs are kept."""
        return keepers(self.scenario)

    @cached_property
    def _cancellers(self) -> Mapping[str, str]:
        """By the key of each message that cancels a kept output, the key of the message that keeps it."""
        return cancellers(self.scenario)

    @property
    def _deletes(self) -> str | None:
        """Key of the message that deletes the entity; None if none does."""
        return self.keys[-1] if self.scenario.deletes else None

    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        """What is wrong with publishing these outputs."""
        for output in outputs:
            key, history = content_of(output)
            released = release_of(key)
            if key in self._keepers and (released, history) not in store.committed:
                return f"no_ghost_output: the kept output of {key} is published, but was never released"
            if (key, history) in store.committed:
                if output.place is not None and output.place.number > len(self._chained):
                    return f"in_sequence: output of {key} has number {output.place.number}; so many were never sent"
                continue
            if any(key == committed for committed, _ in store.committed):
                return f"consistent_state_and_output: another output of {key} is published than was committed"
            return f"no_ghost_output: {key} is published, but was never committed"
        return None

    def lost(self, key: str, store: Store) -> str | None:
        """The violation in acknowledging a message."""
        if key in store.parked:
            return None
        if not any(key == committed for committed, _ in store.committed):
            return f"nothing_lost: {key} is acknowledged, but was never committed"
        if key not in store.published | store.overdue | self._keepers:
            return f"nothing_lost: {key} is acknowledged, but its output was never published"
        return None

    def left_undone(self, store: Store, but: Container[str] = ()) -> str | None:
        """The violation if nobody is at work any more: a message that is lost, or staged outputs that no entry names."""
        committed = {key for key, _ in store.committed}
        numbered = zip(self.keys, self.scenario.copies, strict=True)
        waits = not self.scenario.requests
        expected = (key for key, copies in numbered if ((copies and waits) or key in committed) and key not in but)
        undone = self.first_lost(expected, store)
        if (
            undone is None
            and self.scenario.budget.cleanings
            and any(map(_has_garbage, store.entities, store.libraries))
        ):
            undone = "no_garbage: all is done, and staged outputs are left that no entry names"
        return undone or self._awaited(store) or self._kept(store)

    def _awaited(self, store: Store) -> str | None:
        """The violation if a reply is awaited that does not lie parked: nobody is at work, so it will not come."""
        replies = enumerate(self.scenario.replies)
        parked = {call_of(one.call) for number, one in replies if one is not None and self.keys[number] in store.parked}
        awaited = (call for entity in store.entities for call in entity.ledger.calls if call not in parked)
        return next((f"nothing_lost: the reply to {call} is awaited, and none is left" for call in awaited), None)

    def _kept(self, store: Store) -> str | None:
        """The violation if a message is still kept, or was released and not published: a sweep is to come."""
        kept = [one.id for entity in store.entities for one in entity.ledger.kept]
        released = (released_by(key) for key, _ in store.committed)
        kept += [key for key in released if key is not None and key not in store.published]
        return next((f"nothing_lost: {one} is due, and was not published" for one in kept), None)

    def commit(self, write: Commit, before: Entity, after: Entity, store: Store) -> tuple[Committed, str | None]:
        """What is committed once a write has taken effect, and the violation."""
        committed, violation = self._committed(write, before, store)
        if violation is None and self.scenario.ages is not None:
            violation = _dropped(before, after, store)
        return committed, violation

    def _committed(self, write: Commit, entity: Entity, store: Store) -> tuple[Committed, str | None]:
        before, after = entity.ledger, ledger_of(write.document)
        written = history_of(write.document)
        count = after.version - before.version
        if count == 0:
            unchanged = written == history_of(entity.truth.document) or entity.truth.document is None
            unchanged = unchanged and before.kept == after.kept
            return store.committed, None if unchanged else OVERWRITTEN
        violation = None
        history = latest = entity.history
        committed = set(store.committed)
        known = {key for key, _ in committed}
        deleted = before.deleted
        kept = {one.id for one in before.kept}
        for number, entry in enumerate(after.entries[-count:] if count > 0 else ()):
            if (keeper := released_by(entry.message)) is not None:
                said = dict(committed).get(keeper, "")
                violation = violation or _wrong_release(entry, keeper, said, kept, known)
                committed.add((entry.message, said))
                known.add(entry.message)
                kept.discard(f"out:{keeper}")
                continue
            cancelled = kept & {f"out:{self._cancellers.get(entry.message)}"}
            kept -= cancelled
            said = said_on(history, None if entry.answer is None else entry.answer.asked)
            said = f"{said}{CANCELLED if cancelled else ''}"
            if entry.message in self._keepers:
                kept.add(f"out:{entry.message}")
            violation = violation or self._wrong(entry, said, before.version + number + 1, known, store)
            committed.add((entry.message, said))
            known.add(entry.message)
            deleted = entry.message == self._deletes
            latest = grown(history, entry.message)
            history = "" if deleted else latest
        if written != latest:
            violation = violation or OVERWRITTEN
        if kept != {one.id for one in after.kept}:
            violation = violation or "nothing_lost: a kept message was dropped, or comes back"
        if deleted != after.deleted:
            violation = violation or "serial_execution: a deletion was lost or made up"
        return frozenset(committed), violation

    def _wrong(self, entry: Entry, said: str, version: int, known: set[str], store: Store) -> str | None:
        """What is wrong with committing an entry that says this, as this version. Streams blot out digests and versions."""
        if entry.message in known:
            return f"at_most_one_state_change: {entry.message} is committed a second time"
        if other := known & self._same.get(entry.message, frozenset()):
            return f"at_most_one_state_change: {entry.message} is {', '.join(other)} under another number, and is committed"
        if entry.message in self.alone(store) & store.parked:
            return f"parked_is_unprocessed: {entry.message} is committed, but it lies parked"
        at = entry.at if self.scenario.ages is not None else None
        made = version if entry.message in self._callers else None
        right = digest(()) if entry.message in self._keepers else digest_of(entry.message, said, at, made)
        if entry.digest not in {"", right}:
            return f"serial_execution: {entry.message} was not handled on the state it follows"
        if entry.version not in {0, version}:
            return f"serial_execution: {entry.message} is entered as version {entry.version} and made version {version}"
        return None


def _wrong_release(entry: Entry, keeper: str, said: str, kept: set[str], known: set[str]) -> str | None:
    """What is wrong with releasing the output that a message keeps, and that says this."""
    if entry.message in known:
        return f"released_once: the output of {keeper} is released a second time"
    if f"out:{keeper}" not in kept:
        return f"cancelled_is_never_released: the output of {keeper} is released, but was cancelled, or never kept"
    if entry.digest != digest_of(keeper, said, AT):
        return f"consistent_state_and_output: another output of {keeper} is released than was kept"
    return None


def _dropped(before: Entity, after: Entity, store: Store) -> str | None:
    """What is wrong with the entries that a commit drops."""
    kept = {entry.message for entry in after.ledger.entries}
    paid = store.published | store.overdue
    for entry in before.ledger.entries:
        if entry.message not in kept and entry.owed is not None and entry.message not in paid:
            return f"nothing_lost: the ledger forgets {entry.message}, but its output was never published"
    return None


def _has_garbage(entity: Entity, library: Library) -> bool:
    named = entity.ledger.transactions
    staged = (id.removeprefix("staged:") for id in library.now if id.startswith("staged:"))
    return any(tx not in named for tx in staged)
