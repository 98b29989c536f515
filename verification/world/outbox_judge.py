"""What is wrong with a commit of the outbox, with what is published, and with an acknowledgement; and when all is done."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property

from exactlyonce.records.ledger import Ledger, hash_in, split
from exactlyonce.records.outbox import Output
from exactlyonce.values.envelope import message_hash
from verification.world import outbox_handler as handler
from verification.world.outbox_handler import CANCELLED
from verification.world.store import Entity, Library, Store, entity_ref, history_of, is_removed, ledger_of
from verification.world.writes import Commit, Committed, Judge

ENTITY = entity_ref(0)
OVERWRITTEN = "serial_execution: a commit was overwritten by one that did not know of it"


class OutboxJudge(Judge):
    """Judges what happens in one scenario of the outbox. `committed` has the history that each message was handled on."""

    @cached_property
    def _by_hash(self) -> Mapping[str, str]:
        released = ((handler.hash_of_release(key), handler.release_of(key)) for key in self._keepers)
        return dict([*((message_hash(key), key) for key in self.keys), *released])

    @cached_property
    def _callers(self) -> frozenset[str]:
        return handler.callers(self.scenario)

    @cached_property
    def _keepers(self) -> frozenset[str]:
        return handler.keepers(self.scenario)

    @cached_property
    def _cancellers(self) -> Mapping[str, str]:
        """By the key of each message that cancels a kept output, the key of the message that keeps it."""
        return handler.cancellers(self.scenario)

    @property
    def _deletes(self) -> str | None:
        """Key of the message that deletes the entity; None if none does."""
        return self.keys[-1] if self.scenario.deletes else None

    def outputs(self, outputs: tuple[Output, ...], store: Store) -> str | None:
        for output in outputs:
            key, history = handler.content_of(output)
            released = handler.release_of(key)
            if key in self._keepers and (released, history) not in store.committed:
                return f"no_ghost_output: the kept output of {key} is published, but was never released"
            if (key, history) in store.committed:
                if output.place is not None and not history.endswith(f"#{output.place.number}"):
                    return f"in_sequence: the output of {key} is sent with number {output.place.number}"
                continue
            if any(key == committed for committed, _ in store.committed):
                return f"consistent_state_and_output: another output of {key} is published than was committed"
            return f"no_ghost_output: {key} is published, but was never committed"
        return None

    def lost(self, key: str, store: Store) -> str | None:
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
        told = store.emptied or any(map(is_removed, store.entities, store.libraries))
        forgiven = set(self.keys) if told else store.undone - committed
        expected = (
            key
            for key, copies in numbered
            if ((copies and waits) or key in committed) and key not in but and key not in forgiven
        )
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
        parked = {
            handler.call_of(item.call)
            for number, item in replies
            if item is not None and self.keys[number] in store.parked
        }
        awaited = (call for entity in store.entities for call in entity.ledger.calls if call not in parked)
        return next((f"nothing_lost: the reply to {call} is awaited, and none is left" for call in awaited), None)

    def _kept(self, store: Store) -> str | None:
        """The violation if a message is still kept, or was released and not published: a sweep is to come."""
        kept = [item.id for entity in store.entities for item in entity.ledger.kept]
        released = (handler.released_by(key) for key, _ in store.committed)
        kept += [key for key in released if key is not None and key not in store.published]
        return next((f"nothing_lost: {item} is due, and was not published" for item in kept), None)

    def commit(self, write: Commit, before: Entity, after: Entity, store: Store) -> tuple[Committed, str | None]:
        """What is committed once a write has taken effect, and the violation."""
        committed, violation = self._committed(write, before, store)
        return committed, violation or self._dropped(before.ledger, after.ledger, store)

    def _committed(self, write: Commit, entity: Entity, store: Store) -> tuple[Committed, str | None]:
        before, after = entity.ledger, ledger_of(write.document)
        old, marks = _hashes(before), _hashes(after)
        new = [self._by_hash.get(mark, mark) for mark in marks if mark not in old]
        written = history_of(write.document)
        if after.version == before.version:
            unchanged = written == history_of(entity.truth.document) or entity.truth.document is None
            unchanged = unchanged and before.kept == after.kept and not new
            return store.committed, None if unchanged else OVERWRITTEN
        if not written.startswith(entity.history):
            return store.committed, OVERWRITTEN
        handled = [f"web/{id}" for id in written.removeprefix(entity.history).split(">") if id]
        renewed = {message_hash(key): key for key in handled}
        new = [renewed.get(item, item) for item in new]
        made = _Made(entity.history, {item.id for item in before.kept}, dict(store.committed))
        violation = self._released(after, [item for item in new if handler.released_by(item) is not None], made)
        for key in handled:
            violation = violation or self._handled(key, after, made, store)
        if violation is None and sorted(new) != sorted(
            (*handled, *(item for item in new if handler.released_by(item) is not None))
        ):
            violation = "serial_execution: the marks of a commit are not those of its messages"
        if violation is None and after.version != before.version + len(new):
            violation = f"serial_execution: {len(new)} messages make version {after.version} of {before.version}"
        if made.kept != {item.id for item in after.kept}:
            violation = violation or "nothing_lost: a kept message was dropped, or comes back"
        deleted = self._deletes in handled if handled else before.deleted
        if deleted != after.deleted:
            violation = violation or "serial_execution: a deletion was lost or made up"
        return frozenset(made.committed.items()), violation

    def _released(self, after: Ledger, released: list[str], made: _Made) -> str | None:
        violation = None
        for release in released:
            keeper = handler.released_by(release) or ""
            said = made.committed.get(keeper, "")
            if release in made.committed:
                violation = violation or f"released_once: the output of {keeper} is released a second time"
            elif f"out:{keeper}" not in made.kept:
                violation = violation or (
                    f"cancelled_is_never_released: the output of {keeper} is released, but was cancelled, or never kept"
                )
            elif self._says(after, handler.hash_of_release(keeper)) not in (None, said):
                violation = violation or (
                    f"consistent_state_and_output: another output of {keeper} is released than was kept"
                )
            made.committed[release] = said
            made.kept.discard(f"out:{keeper}")
        return violation

    def _handled(self, key: str, after: Ledger, made: _Made, store: Store) -> str | None:
        if key in made.committed:
            return f"at_most_one_state_change: {key} is committed a second time"
        cancelled = made.kept & {f"out:{self._cancellers.get(key)}"}
        made.kept -= cancelled
        hash = message_hash(key)
        asked = next((answer.answer.asked for answer in after.answers if answer.cause == hash), None)
        entry = next((item for item in after.outbox if item.cause == hash), None)
        if asked is None and entry is not None and entry.answer is not None:
            asked = entry.answer.asked
        said = f"{handler.said_on(made.history, asked)}{CANCELLED if cancelled else ''}"
        if key in self._keepers:
            made.kept.add(f"out:{key}")
        if self.scenario.numbers:
            said = f"{said}#{sum(not item.startswith('out/') for item in made.committed) + 1}"
        made.committed[key] = said
        made.history = "" if key == self._deletes else handler.grown(made.history, key)
        if key in self.alone(store) & store.parked:
            return f"parked_is_unprocessed: {key} is committed, but it lies parked"
        if self._says(after, hash) not in (None, said):
            return f"serial_execution: {key} was not handled on the state it follows"
        return None

    @staticmethod
    def _says(ledger: Ledger, hash: str) -> str | None:
        """What the output that an outbox owes for a message says; None if it owes none."""
        entries = (item for item in ledger.outbox if item.cause == hash)
        outputs = (output for entry in entries for output in entry.owed_outputs(ENTITY, ledger.to, ledger.sequences))
        return next((handler.content_of(output)[1] for output in outputs), None)

    def _dropped(self, before: Ledger, after: Ledger, store: Store) -> str | None:
        owing = {entry.tx for entry in after.outbox}
        for entry in before.outbox:
            if entry.tx in owing:
                continue
            document = store.libraries[0].now.get(f"request:{entry.request}")
            if document is not None and document.answer is None:
                return f"one_answer: the outbox drops the answer to {entry.request}, which was never kept"
            if not entry.outputs:
                continue
            key, _ = handler.content_of(next(entry.owed_outputs(ENTITY, before.to, before.sequences)))
            if key not in store.published | store.overdue:
                return f"nothing_lost: the outbox drops {key}, but its output was never published"
        return None


@dataclass
class _Made:
    """What the messages of a commit made so far."""

    history: str
    kept: set[str]
    committed: dict[str, str]


def _hashes(ledger: Ledger) -> frozenset[str]:
    return frozenset(map(hash_in, split(ledger.marks)))


def _has_garbage(entity: Entity, library: Library) -> bool:
    named = entity.ledger.transactions
    staged = (id.removeprefix("staged:") for id in library.now if id.startswith("staged:"))
    return any(tx not in named for tx in staged)
