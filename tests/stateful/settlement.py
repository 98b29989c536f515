"""Random histories of one entity whose messages may end in the poison queue: deliveries, settler and requeuing, at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar

from exactlyonce.effects import Step
from exactlyonce.envelope import Envelope
from exactlyonce.handling.attempts import Again, Memory, Strategy, Work, key_of
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.running import Runner
from exactlyonce.invariants import violations
from exactlyonce.records import Output
from exactlyonce.strategies.settling import requeue
from tests.samples import accounts, deposit, ledger_queue
from tests.stateful.interleaving import Interleaving

ACCOUNTS = accounts()
ENTITY = ACCOUNTS.ref("a")
RUNNER = Runner(ACCOUNTS, ENTITY, Routes({"receipts": 10_000}))
DEPOSITS = tuple(deposit(f"m-{number}") for number in range(1, 5))


class Settlement(Interleaving):
    """One random history. `queue`, `poison` and `parked` say where copies of messages are known to be.

    Subclasses say how a message is settled, and what else goes on: `chores` are begun at random, and in peace at the end.
    """

    messages: ClassVar[Mapping[str, Envelope]] = {key_of(one): one for one in DEPOSITS}

    def __init__(self, seed: int, strategy: Strategy) -> None:
        super().__init__(Random(seed), [ledger_queue])
        self.strategy = strategy
        self.queue = [key for key in self.messages for _ in range(self.random.randint(1, 2))]
        self.poison: list[str] = []
        self.parked: set[str] = set()
        self.alone_when_parked: set[str] = set()
        self.told: list[str] = []

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
            self.advance()
        self.finish()
        return [*self.told, *map(str, violations(self.world.facts(), drained=True)), *self.garbage()]

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
        key = self.queue.pop(self.random.randrange(len(self.queue)))

        def ended(result: Any) -> None:
            if result is not None and not isinstance(result, Again) and key not in dict(result.failed):
                self.acknowledge(key)
            else:
                self.random.choice([self.queue, self.queue, self.poison]).append(key)

        self.begin(self.strategy.attempt(self.work(key), Memory()), ended, key)

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
        if key in self.alone_when_parked and key in self.committed():
            self.told.append(
                f"{key} was parked, though it was processed, or an attempt under way could still process it"
            )
        self.alone_when_parked.discard(key)

        def ended(result: Any) -> None:
            if result is None or isinstance(result, Again) or result.outcome == "not parked":
                self.parked |= {key} & self.in_parking()

        self.begin(requeue(ENTITY, key, "accounts", None, Memory()), ended, key)

    def arrive(self, output: Output) -> None:
        if output.destination == "accounts":
            self.queue.append(key_of(Envelope.read(output.envelope.text)))
        else:
            super().arrive(output)

    def acknowledge(self, key: str) -> None:
        self.world.acknowledged.add((ENTITY.key, key))

    def alone(self, key: str) -> bool:
        """Whether there is no other copy of the message, nor will be before it is parked, so that nobody can process it."""
        elsewhere = [*self.queue, *self.poison, *self.parked, *(job.about for job in self.jobs)]
        return key not in elsewhere

    def committed(self) -> set[str]:
        return {commit.message for commit in self.world.facts().commits}

    def in_parking(self) -> set[str]:
        return {id.removeprefix("parked:") for id in self.documents("parked:")}

    def documents(self, kind: str) -> list[str]:
        library = self.store._library(ENTITY)
        return [id for id in library.ids(len(library.log)) if id.startswith(kind) and library.newest(id)]

    def garbage(self) -> list[str]:
        """Documents that are left over at the end."""
        return [f"{id} is left over" for id in self.documents("parked:")]
