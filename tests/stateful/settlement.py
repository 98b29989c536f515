"""Random histories of one entity whose messages may end in the poison queue: deliveries, settler and requeuing, at any time.

Deliveries take too long now and then: they are given back, and may be given up, while the attempts for them go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

from exactlyonce.attempt import Again, Memory, Strategy, Work
from exactlyonce.effects.effect import UNKNOWN, Begin, Step
from exactlyonce.effects.library import OpenNumbers
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.steps.park import requeue
from exactlyonce.records.outbox import Output
from exactlyonce.testing.guarantee import violations
from exactlyonce.values.envelope import STABLE_TIME, Envelope, key_of, message_hash
from tests.samples import accounts, deposit, ledger_queue
from tests.stateful.interleaving import Interleaving

ACCOUNTS = accounts()
ENTITY = ACCOUNTS.ref("a")
RUNNER = Runner(ACCOUNTS, ENTITY, Routes({"receipts": 10_000}))
TRIES = 3
STABLE = ((STABLE_TIME, "2026-01-01T00:00:00.000Z"),)
DEPOSITS = tuple(replace(deposit(f"m-{number}"), extensions=STABLE if number % 2 else ()) for number in range(1, 5))
"""Half of them are timed."""


@dataclass(eq=False)
class Held:
    """A group of messages with an attempt under way.

    Attributes:
        all: keys of all of them.
        keys: of those whose deliveries have not been given back.
    """

    all: tuple[str, ...]
    keys: list[str]


class Settlement(Interleaving):
    """One random history. `queue`, `poison` and `parked` say where copies of messages are known to be.

    Subclasses say how a message is settled, and what else goes on: `chores` are begun at random, and in peace at the end.
    """

    messages: ClassVar[Mapping[str, Envelope]] = {key_of(item): item for item in DEPOSITS}

    def __init__(self, seed: int, strategy: Strategy) -> None:
        super().__init__(Random(seed), [ledger_queue])
        self.strategy = strategy
        most = self.random.choice([1, 2])
        self.queue = [key for key in self.messages for _ in range(self.random.randint(1, most))]
        self.poison: list[str] = []
        self.parked: set[str] = set()
        self.alone_when_parked: set[str] = set()
        self.wrong: list[str] = []
        self.held: list[Held] = []

    @property
    def chores(self) -> tuple[Callable[[], None], ...]:
        """What else goes on."""
        return ()

    def settling(self, key: str) -> Step[Any]:
        """How a message of the poison queue is settled."""
        raise NotImplementedError

    def work(self, *keys: str) -> Work:
        return Work(ENTITY, tuple(self.messages[key] for key in keys), RUNNER, RUNNER.absent)

    def play(self, steps: int = 400) -> list[str]:
        """Everything at once, then in peace to the end; what is wrong with it."""
        begin = [self.deliver, self.deliver, self.settle, self.send_again, *self.chores]
        for _ in range(steps):
            if len(self.jobs) < 3:
                self.random.choice(begin)()
            if self.random.random() < 0.1:
                self.give_back()
            self.advance()
        self.finish()
        return [*self.wrong, *map(str, violations(self.world.facts(), drained=True)), *self.garbage()]

    def finish(self) -> None:
        self.calm()
        self.parked |= self.in_parking()
        while self.queue or self.poison or self.parked:
            for begin in (self.deliver, self.settle, self.send_again):
                begin()
                self.run_out()
        for begin in self.chores:
            begin()
            self.run_out()

    def deliver(self) -> None:
        if not self.queue:
            return
        keys = [self.queue.pop(self.random.randrange(len(self.queue)))]
        if self.queue and self.strategy.group_limit > 1 and self.random.random() < 0.3:
            keys.append(self.queue.pop(self.random.randrange(len(self.queue))))
        held = Held(tuple(keys), keys)
        self.held.append(held)

        def ended(result: Any) -> None:
            self.held.remove(held)
            for key in held.keys:
                if result is not None and not isinstance(result, Again) and key not in dict(result.failed):
                    self.acknowledge(key)
                else:
                    self.random.choice([self.queue, self.queue, self.poison]).append(key)

        self.begin(self.attempts(held), ended)
        if self.random.random() < 0.2:  # It has waited for its turn for nearly as long as it may.
            self._given_back(held)

    def attempts(self, held: Held) -> Step[Any]:
        """What a lane does for a group: attempts until one comes to something, for those that are held at its beginning."""
        memory, outcome = Memory(), None
        for _ in range(TRIES):
            work = self.work(*(self.going_on_for(held) or held.all))
            outcome = yield from self._answering(self.strategy.attempt(work, memory), held)
            if not isinstance(outcome, Again):
                break
            memory = outcome.memory
        return outcome

    def going_on_for(self, held: Held) -> Sequence[str]:
        """The messages that an attempt may work for."""
        return held.keys

    def _answering(self, attempt: Step[Any], held: Held) -> Step[Any]:
        """An attempt as the driver runs it: messages whose deliveries were given back get no transaction id."""
        reply: Any = None
        while True:
            try:
                effect = attempt.send(reply)
            except StopIteration as finished:
                return finished.value
            reply = yield effect
            if isinstance(effect, (Begin, OpenNumbers)) and reply is not UNKNOWN:
                going_on = self.going_on_for(held)
                kept = [
                    tx if key in going_on else None
                    for key, tx in zip(effect.messages, reply.transactions, strict=False)
                ]
                reply = replace(reply, transactions=(*kept, *reply.transactions[len(kept) :]))

    def give_back(self) -> None:
        """A delivery under way has no more time."""
        if under_way := [held for held in self.held if held.keys]:
            self._given_back(self.random.choice(under_way))

    def _given_back(self, held: Held) -> None:
        key = held.keys.pop(self.random.randrange(len(held.keys)))
        self.random.choice([self.queue, self.poison]).append(key)

    def settle(self) -> None:
        if not self.poison:
            return
        key = self.poison.pop()
        alone = self.alone(key)

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again):
                self.poison.append(key)
            elif result.outcome == "processed":
                self.acknowledge(key)
            else:
                self.parked.add(key)
                if alone:
                    self.alone_when_parked.add(key)

        self.begin(self.settling(key), ended, key)

    def send_again(self) -> None:
        if not self.parked:
            return
        key = self.parked.pop()
        if key in self.alone_when_parked and message_hash(key) in self.committed():
            self.wrong.append(
                f"{key} was parked, though it was processed, or an attempt under way could still process it"
            )
        self.alone_when_parked.discard(key)

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again) or result.outcome == "not parked":
                self.parked |= {key} & self.in_parking()

        self.begin(requeue(ENTITY, key, "accounts", lambda _: None, Memory()), ended, key)

    def arrive(self, output: Output) -> None:
        if output.destination == "accounts":
            self.queue.append(key_of(Envelope.read(output.envelope.text)))
        else:
            super().arrive(output)

    def acknowledge(self, key: str) -> None:
        self.world.acknowledged.add((ENTITY.key, key))

    def alone(self, key: str) -> bool:
        """Whether there is no other copy of the message, nor will be before it is parked, so that nobody can process it."""
        held = (item for held in self.held for item in held.keys)
        elsewhere = [*self.queue, *self.poison, *self.parked, *held, *(job.about for job in self.jobs)]
        return key not in elsewhere

    def committed(self) -> set[str]:
        """Hashes of the messages that were processed."""
        return {commit.message for commit in self.world.facts().commits}

    def in_parking(self) -> set[str]:
        return {id.removeprefix("parked:") for id in self.documents("parked:")}

    def documents(self, kind: str) -> list[str]:
        """Ids of the documents of a kind, with which their ids begin. Of what is parked no longer there is a note."""
        library = self.store._library(ENTITY)
        there = library.view(len(library.log)).items()
        return [
            id for id, item in there if id.startswith(kind) and item.document and item.document.value["kind"] in kind
        ]

    def garbage(self) -> list[str]:
        """Documents that are left over at the end."""
        return [f"{id} is left over" for id in self.documents("parked:")]
