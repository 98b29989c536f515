"""One instance of the application: everything the library runs above the store, put together as hosting does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any, Final, TypeVar

from azure.functions.queue import QueueMessage

from exactlyonce import Entity, Envelope, TryAgainLater
from exactlyonce.drivers.driver import AsyncDriver, Backoff, Retrying
from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.drivers.runtime import Runtime, StoreTime
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.effect import Step
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.maintenance import Maintenance
from exactlyonce.hosting.deliveries.poison import PoisonSettler
from exactlyonce.hosting.deliveries.settlement import UNEXPLAINED_ROUNDS, Outcome, Returner
from exactlyonce.hosting.deliveries.triggers import Delivered, Failures, envelope_of, id_of
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.hosting.upkeep.sweeper import Swept
from exactlyonce.stores.memory.listing import MemoryListing
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.loop import VirtualClock
from exactlyonce.values.envelope import EntityRef, key_of
from verification.simulation.plans import Plan
from verification.simulation.protocols import Application
from verification.simulation.wire import SendingWire, Surrounding, Wire
from verification.simulation.workload import DESTINATIONS

_SLACK: Final = timedelta(hours=1)  # Messages grow older while they are settled.


@dataclass(frozen=True)
class NotedSettler(PoisonSettler):
    """A settler as others see it: it lets another one decide, and records in the history.

    Attributes:
        settled_as: the entity type with a strategy of the library's own, whatever twin runs elsewhere.
        outcomes: of the messages that were settled in a batch, by the ids of their copies, until somebody asks.
    """

    decides: PoisonSettler = field(kw_only=True)
    world: Surrounding = field(kw_only=True)
    settled_as: Callable[[Entity[Any]], Entity[Any]] = field(kw_only=True)
    fails: Callable[[str], bool] = field(kw_only=True)
    parked: Callable[[str, Envelope], None] = field(kw_only=True)
    outcomes: dict[str, Outcome] = field(kw_only=True, default_factory=dict)

    async def settle(self, entity: Entity[Any], message: Delivered, queue: str, *args: Any, **more: Any) -> Outcome:
        envelope = envelope_of(message)
        name = str(envelope.data.value["name"])
        history = self.world.history
        ref, key, copy = entity.ref_of(envelope), key_of(envelope), history.copies.only(name)
        before = self._parked_as(ref, key)
        outcome = await self.decides.settle(self.settled_as(entity), message, queue, *args, **more)
        self.outcomes[id_of(message)] = outcome
        self.world.weather.counted[f"given up: {outcome}"] += 1
        if outcome == "parked":
            decided = self._parked_as(ref, key) != before  # Else it was put aside, of which nothing is said.
            history.park(name, copy if decided else None)
            if not decided:
                self.world.weather.counted["put aside"] += 1
            elif not self.fails(name) and envelope.unexplained < UNEXPLAINED_ROUNDS and self._may_be_sent(envelope):
                reason = f"{name} was parked, though only its environment failed"
                history.convict("heals_by_itself", ref.id, reason)
            self.parked(name, envelope)
        return outcome

    def _may_be_sent(self, envelope: Envelope) -> bool:
        now = VirtualClock(self.world.loop).now()
        limit = self.settler.lifetimes().send_limit(now)
        time = envelope.judged_by
        return time is not None and now - time < limit - _SLACK

    def _parked_as(self, entity: EntityRef, key: str) -> str | None:
        """The ETag under which a message lies among those that were not processed."""
        return parked_etag(self.world.store, entity, key)


def parked_etag(store: MemoryStore, place: EntityRef, key: str) -> str | None:
    """The ETag of the parked document of a message; None if there is none, or a note that it is parked no longer."""
    partition = store.library.get(place.key)
    version = partition and partition.newest(f"parked:{key}")
    parked = version and version.document is not None and version.document.value["kind"] == "parked"
    return version.etag if version and parked else None


Result = TypeVar("Result")
_TRIES_OF_A_JOB: Final = 3


@dataclass(frozen=True, slots=True)
class Message:
    """A message; `accepted_at` is in seconds since the start."""

    name: str
    entity: EntityRef
    envelope: Envelope
    accepted_at: float


@dataclass(slots=True)
class Delivery:
    """A copy of a message in the queue, which counts how often it was given out."""

    message: Message
    number: int
    times: int = 0

    @property
    def body(self) -> QueueMessage:
        """The copy as a trigger of a storage queue has it."""
        body = self.message.envelope.to_json().text.encode()
        return QueueMessage(id=str(self.number), body=body, dequeue_count=self.times)  # type: ignore[no-untyped-call]


class Process:
    """What it remembers dies with it."""

    def __init__(
        self,
        world: Surrounding,
        random: Random,
        application: Application,
        plan: Plan,
        *,
        doomed: Callable[[Process], None],
        parked: Callable[[str, Envelope], None],
    ) -> None:
        clock = VirtualClock(world.loop, random.uniform(-1, 1) * plan.wrong)
        present = StoreTime(clock)
        wire, sender = Wire(world, lambda: doomed(self), present.compare), SendingWire(world, lambda: doomed(self))
        runtime = Runtime(clock, random, lambda: f"{random.getrandbits(128):032x}", present=present.now)
        self._application, self._plan, protocols = application, plan, application.protocols
        self._books = protocols.books(wire.perform, runtime)
        addresses = {name: Address(sender, name) for name in DESTINATIONS}
        lifetimes = lambda: plan.lifetimes  # noqa: E731

        def driver(*, remembers: bool, marks: Callable[[], str] | None = None) -> AsyncDriver:
            publisher = Publisher(addresses, marks, remembers=remembers, now=world.loop.time)
            return AsyncDriver(wire, publisher, runtime, lifetimes=lifetimes, books=self._books)

        retrying = Retrying(Backoff(tries=plan.tries, seconds=plan.patience), random)
        senders = frozenset((application.boards.name, application.tallies.name))

        def maintenance(retrying: Retrying, *, remembers: bool = True) -> Maintenance:
            drives = driver(remembers=remembers, marks=runtime.new_transaction)
            return Maintenance(drives, retrying, application.routes, lifetimes, senders)

        self._lanes = protocols.lanes(driver(remembers=True), retrying, clock, plan.memory)
        self._mending = maintenance(retrying, remembers=False)
        # Brief, since the sweeper comes again soon.
        self._chores = maintenance(Retrying(Backoff(tries=_TRIES_OF_A_JOB, seconds=plan.patience), random))
        claims, failures, finishing = ClaimChecks(None), Failures(), maintenance(retrying)

        async def ready() -> None:
            # Hosting asks here whether the accounts are as they have to be; so it knows the store's time.
            present.compare(VirtualClock(world.loop).now())

        returner = Returner(finishing, claims, random)
        giving_up = protocols.giving_up(finishing, failures, returner, lifetimes, ready, clock.now)
        self._poison = NotedSettler(
            giving_up,
            claims,
            decides=PoisonSettler(giving_up, claims),
            world=world,
            settled_as=application.shipped,
            fails=application.fails if protocols.heals else lambda _: True,
            parked=parked,
        )
        self._receiver = protocols.receiver(
            self._lanes, self._mending, claims, failures, self._poison, ready, ready, lifetimes, present.now
        )
        self._types = application.boards, application.tallies.using(random.choice(protocols.strategies))
        listing = MemoryListing(world.store)
        self._operator = Operator(self._mending, listing, lifetimes, tuple(map(application.shipped, self._types)))
        self._sweeper = protocols.sweeper(self._chores, listing, runtime)
        self._jobs: list[asyncio.Future[Any]] = []
        self.in_flight, self.alive = 0, True

    async def process(self, deliveries: Sequence[Delivery], entity: EntityRef) -> None:
        """Process one delivery, or those of a batch, for entities of one type; raises what they are given back for."""
        messages, type = [delivery.body for delivery in deliveries], self._type_of(entity)
        for delivery in deliveries:
            self.outcome(delivery)  # That of an earlier delivery says nothing any more.
        if self._plan.batch == 1:
            await self._end_with_me(self._receiver.take(messages[0], type, None))
        else:
            queue = self._application.queue_of(entity)
            await self._end_with_me(self._receiver.take_all(messages, type, queue, None, self._plan.deliveries))

    async def settle(self, delivery: Delivery) -> Outcome:
        """Decide about a message of a poison queue; raises what it stays there for."""
        entity = delivery.message.entity
        queue = self._application.queue_of(entity)
        return await self._end_with_me(self._poison.settle(self._type_of(entity), delivery.body, queue))

    def outcome(self, delivery: Delivery) -> Outcome:
        """What was decided about a delivery that has ended: it was processed, unless it was given up."""
        return self._poison.outcomes.pop(str(delivery.number), "processed")

    async def operate(self, request: Callable[[Operator], Coroutine[Any, Any, Result]]) -> Result | None:
        """Do what a person asks for; None if nobody knows what came of it."""
        try:
            return await self._end_with_me(request(self._operator))
        except (TryAgainLater, asyncio.CancelledError):
            return None

    async def run(self, entity: EntityRef, step: Callable[[Memory], Step[Any]], memory: Memory | None = None) -> Any:
        """Run one of the jobs that look after entities, again until it proves something; None if it does not, or dies."""
        try:
            return await self._end_with_me(self._chores.run(entity, step, memory))
        except (TryAgainLater, asyncio.CancelledError):
            return None

    async def ask(self, envelope: Envelope, entity: EntityRef) -> bool:
        """Process a request; whether it is answered as the first time. Raises what a caller is told in place of an answer."""
        request = replace(envelope, asked=envelope.id)
        processed = await self._end_with_me(self._receiver.ask(request, self._type_of(entity), entity))
        return processed.answer is not None and processed.answer.is_to(envelope.id)

    async def sweep(self, at_least: timedelta) -> Swept | None:
        """Sweep what is unfinished, and has been for so long; None if the process dies meanwhile."""
        try:
            return await self._end_with_me(self._sweeper.sweep(self._types, at_least))
        except asyncio.CancelledError:
            return None

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self._jobs

    async def end(self) -> None:
        """End in order, with a book that says so if all that it numbered is done."""
        with suppress(asyncio.CancelledError):  # It may die of this.
            await self._end_with_me(self._ended())
        self.die()

    def die(self) -> None:
        self.alive = False
        self._lanes.abandon()
        self._books.abandon()
        for job in self._jobs:
            job.cancel()

    def _type_of(self, entity: EntityRef) -> Entity[Any]:
        boards, tallies = self._types
        return boards if self._application.is_board(entity) else tallies

    async def _ended(self) -> None:
        await self._lanes.quiesce()
        await self._books.end()

    async def _end_with_me(self, job: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.ensure_future(job)
        self._jobs.append(task)
        try:
            return await task
        finally:
            self._jobs.remove(task)
