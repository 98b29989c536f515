"""The oracle: what is left of a history must be a serial execution of distinct messages; and histories of random machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

from exactlyonce import Colocated, Entity, Envelope, HandlerFailed, Outbox
from exactlyonce.attempt import Again, Before, Handle, Handled, Memory, Work
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.records.ledger import Ledger, hash_in, read_entity, split
from exactlyonce.records.outbox import Output
from exactlyonce.records.sequences import Sequences
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import StoreHistory
from exactlyonce.values.envelope import EntityRef, key_of, message_hash
from exactlyonce.values.frozen_json import Json
from tests.asking import unhandled
from tests.stateful.interleaving import Interleaving
from tests.stateful.machines import DESTINATIONS, LIMITS

ROUTES = Routes.to(DESTINATIONS, LIMITS)


@dataclass(frozen=True)
class Ending:
    """How an entity ends: its document without the ledger, whether it is deleted, numbers given out, and all it published."""

    body: Json | None
    deleted: bool
    sequences: Sequences
    outputs: frozenset[Output]

    @property
    def whatever_its_attempts(self) -> Ending:
        """The same with channels that are named after their receivers: their ids are different in every attempt."""
        receivers = {sequence.channel: sequence.receiver for sequence in self.sequences}

        def renamed(output: Output) -> Output:
            if output.place is None:
                return output
            channel, receiver = output.place.channel, receivers[output.place.channel]
            text = output.envelope.text.replace(channel, receiver)
            return replace(output, envelope=Json(text), place=replace(output.place, channel=receiver))

        sequences = tuple(sequence._replace(channel=sequence.receiver) for sequence in self.sequences)
        return replace(self, sequences=sequences, outputs=frozenset(map(renamed, self.outputs)))


NOTHING = Ending(None, False, (), frozenset())


class MachineHistory(Interleaving):
    """A random history of the entities of one type.

    Args:
        random: the source of chance.
        entity: with its strategy.
        messages: to be delivered.
        store: as for `Interleaving`.
    """

    def __init__(
        self,
        random: Random,
        entity: Entity[Any],
        messages: Sequence[Envelope],
        store: type[MemoryStore] = MemoryStore,
    ) -> None:
        super().__init__(random, DESTINATIONS, store=store)
        self.entity = entity
        self.messages = {key_of(message): message for message in messages}
        self.refs = {entity.ref_of(message) for message in messages}
        self.waiting = list(self.messages)
        self.acknowledged: set[str] = set()
        self.memories: dict[EntityRef, Memory] = {}
        self.given: dict[str, Before] = {}
        self.handled: dict[EntityRef, list[tuple[Before, Envelope]]] = defaultdict(list)

    def play(self) -> None:
        """Groups of messages, in any order, several times, at the same time; then in peace to the end."""
        self.waiting += self.random.choices(self.waiting, k=len(self.waiting) // 2)
        self.random.shuffle(self.waiting)
        for _ in range(60 * len(self.messages)):
            if self.waiting and len(self.jobs) < 3:
                self.deliver(self._any_group())
            self.advance()
        self.calm()
        self.finish()

    def finish(self) -> None:
        """Deliver what was never acknowledged until no more of it can be processed, and everything once more."""
        done: set[str] | None = None
        while done != self.acknowledged:
            done = set(self.acknowledged)
            for key in self.messages:
                self.deliver((key,))
                self.run_out()
        for ref in self.refs:
            self._sweep(ref)
            self.run_out()

    def one_at_a_time(self) -> None:
        """Each message by itself until it is acknowledged or fails, and some of those that came before once more."""
        trouble = self.store._trouble
        for key in list(self.messages):
            for wanted in (key, *self.random.sample(sorted(self.acknowledged), min(1, len(self.acknowledged)))):
                self.waiting = [wanted]
                while self.jobs or self.waiting:
                    if not self.jobs:
                        self.deliver((self.waiting.pop(),))
                    self.advance()
            if key not in self.acknowledged:  # It may have failed on an old view, as no other message will.
                self.calm()
                self.deliver((key,))
                self.run_out()
                self.store._trouble = trouble
            self.now += timedelta(seconds=1)
        self.calm()
        for key in sorted(self.acknowledged):  # The next message settles what is owed where no sweeper comes.
            self.deliver((key,))
            self.run_out()
        for ref in self.refs:
            self._sweep(ref)
            self.run_out()

    def _any_group(self) -> tuple[str, ...]:
        """Some of the waiting messages for one entity."""
        first = self.waiting.pop()
        ref = self.entity.ref_of(self.messages[first])
        limit = self.random.choice([1, 2, self.entity.strategy.group_limit])
        same = [key for key in self.waiting if self.entity.ref_of(self.messages[key]) == ref]
        group = same[: self.random.randrange(limit)]
        for key in group:
            self.waiting.remove(key)
        return (first, *group)

    def deliver(self, group: tuple[str, ...]) -> None:
        ref = self.entity.ref_of(self.messages[group[0]])

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again):
                self.waiting += group
                self.memories[ref] = Memory() if result is None else result.memory
                return
            self.memories[ref] = result.memory
            failed = dict(result.failed)
            assert all(isinstance(error, HandlerFailed) for error in failed.values())
            for key in {*group} - failed.keys():
                self.acknowledged.add(key)
                self.world.acknowledged.add((ref.key, key))

        runner = self.runner(ref)
        envelopes = tuple(self.messages[key] for key in group)
        work = Work(ref, envelopes, self._noting(ref, runner), runner.absent, runner.evolve)
        # Who shares the memory may also be another instance, which has none.
        memory = self.memories.pop(ref, Memory()) if self.random.random() < 0.5 else Memory()
        self.begin(self.entity.strategy.attempt(work, memory), ended)

    def _noting(self, ref: EntityRef, runner: Runner) -> Handle:
        """The handler, which notes what it was given, and in which order an attempt handled its messages."""

        def handle(before: Before, envelope: Envelope) -> Handled:
            handled = runner(before, envelope)
            if before.sent is None:
                self.given[before.tx] = before
            if before.version is not None:
                self.handled[ref].append((before, envelope))
            return handled

        return handle

    def runner(self, ref: EntityRef) -> Runner:
        return Runner(self.entity, ref, ROUTES)

    def _sweep(self, ref: EntityRef) -> None:
        if isinstance(self.entity.strategy, (Outbox, Colocated)):
            self.begin(self.entity.strategy.sweep(unhandled(ref), Memory()))

    def ending(self, ref: EntityRef) -> Ending:
        """How an entity ends."""
        found = self.store._entity(ref).newest(ref.id)
        view = read_entity(ref, None if found is None else found.document)
        body = None if found is None or found.document is None else without_ledger(found.document)
        ledger = view.ledger or Ledger()
        outputs = (item for item in self.world.published if item.envelope.value["source"] == ref.source)
        return Ending(body, ledger.deleted, ledger.sequences, frozenset(outputs))

    def serially(self, ref: EntityRef) -> Ending:
        """How it would end if its messages had been handled one after the other, in the order in which they were committed."""
        if isinstance(self.entity.strategy, Outbox):
            return self._by_marks(ref)
        told = [item for (key, _), item in StoreHistory(self.store).records.items() if key == ref.key]
        ordered = sorted(told, key=lambda item: item.version)
        assert [commit.version for commit in ordered] == [*range(1, len(told) + 1)]
        return self._after(NOTHING, ref, [(self.given[item.tx], self.messages[item.message]) for item in ordered])

    def _by_marks(self, ref: EntityRef) -> Ending:
        """The same where marks tell which messages a commit processed, but not in which order."""
        ending, before = NOTHING, Ledger()
        for version in self.store._entity(ref).log:
            if version.id != ref.id or version.document is None:
                continue
            ledger = read_entity(ref, version.document).ledger or Ledger()
            known = {hash_in(part) for part in split(before.marks)}
            added = {hash_in(part) for part in split(ledger.marks)} - known
            assert len(added) == ledger.version - before.version
            if added:
                saved = without_ledger(version.document)
                starts = (
                    place for place, (given, _) in enumerate(self.handled[ref]) if given.version == before.version + 1
                )
                orders = (self.handled[ref][start : start + len(added)] for start in starts)
                may_be = (
                    order for order in orders if {message_hash(key_of(envelope)) for _, envelope in order} == added
                )
                endings = (self._after(ending, ref, item) for item in may_be)
                ending = next(item for item in endings if (item.body, item.sequences) == (saved, ledger.sequences))
            before = ledger
        return ending

    def _after(self, ending: Ending, ref: EntityRef, messages: Sequence[tuple[Before, Envelope]]) -> Ending:
        """How an entity ends once these messages, too, were handled one after the other."""
        runner = self.runner(ref)
        for before, envelope in messages:
            body = None if ending.deleted else ending.body
            handled = runner(replace(before, body=body, sequences=ending.sequences), envelope)
            outputs = ending.outputs | frozenset(handled.outputs)
            ending = Ending(handled.body, handled.deleted, handled.sequences, outputs)
        return ending

    def judge(self) -> None:
        """It was a serial execution of distinct messages, and no property is violated."""
        assert violations(self.world.facts(), drained=True) == ()
        for ref in self.refs:
            assert self.ending(ref) == self.serially(ref)

    def could_be_processed(self) -> list[str]:
        """Messages that were never acknowledged, though their handler would not raise at the end."""
        left = []
        for key in self.messages.keys() - self.acknowledged:
            ref = self.entity.ref_of(self.messages[key])
            ending = self.ending(ref)
            body = None if ending.deleted else ending.body
            try:
                self.runner(ref)(Before(body, self.now, ""), self.messages[key])
                left.append(key)
            except HandlerFailed:
                pass
        return left


def without_ledger(document: Json) -> Json:
    properties = document.value
    del properties["_ledger"]
    return Json.of(properties)
