"""One episode: a seed, a climate, some thousands of messages, calm, judgment."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import accumulate
from math import log10
from random import Random
from typing import Any, Final

from exactlyonce import Envelope
from exactlyonce.effects.library import Park
from exactlyonce.records.outbox import Output
from exactlyonce.testing.loop import START, Interrupted, Overdue, VirtualClock, VirtualLoop
from exactlyonce.values.envelope import EntityRef
from verification.simulation.caretakers import Caretakers, Operators, Restores
from verification.simulation.history import History, Order, Violation
from verification.simulation.host import Hosts
from verification.simulation.judge import judge
from verification.simulation.plans import Plan
from verification.simulation.processes import Message
from verification.simulation.protocols import Application, Protocols, shipped
from verification.simulation.wire import HOUR, Climate, Surrounding, Weather
from verification.simulation.workload import (
    ASKED,
    RELAYED,
    REQUEUED,
    ROUTES,
    SHOWN,
    boards,
    envelope_of,
    tallies,
    tallies_of,
    timed,
)

PATIENCE: Final = 30 * 24 * HOUR
"""How long after the last fault everything may take to come to rest, in virtual seconds."""
_ONE_IN: Final = 8
_RESTORED: Final = (2, 6)
"""Of so many seeds in a row, those are of episodes with backups."""
_TIMERS_A_MESSAGE: Final = 500  # A batch comes again as a whole: the worst climates need hundreds.
_VERY_LATE: Final = 0.03  # Share of messages that are delivered once more when all is done.


@dataclass
class Report:
    """What an episode came to.

    Attributes:
        violations, story: what does not add up, and the events of the entity that the first one is about.
    """

    seed: int
    messages: int
    deliveries: int
    entities: int
    hours: float
    counted: Counter[str]
    digest: str
    violations: list[Violation] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


class Episode:
    """One seeded run.

    Args:
        protocols: in place of the shipped ones, of which the seed decides.
    """

    def __init__(self, seed: int, messages: int, protocols: Protocols | None = None) -> None:
        protocols = protocols or shipped(seed)
        self._seed = seed
        self._random = random = Random(seed)
        self._plan = plan = Plan.draw(random, messages, protocols.protocol)
        if protocols.protocol == "outbox" and seed % _ONE_IN in _RESTORED:
            self._plan = plan = plan.with_restores(random)
        self._counted: Counter[str] = Counter()
        self._loop = VirtualLoop(limit=_TIMERS_A_MESSAGE * (messages + 100))  # type: ignore[abstract]  # It has no I/O.
        self._weather = Weather(random, Climate(random, slow=plan.crowded), self._counted)
        self._history = History(self._loop.time, plan.reading.promises)
        store = protocols.store(VirtualClock(self._loop).now, self._weather)
        world = Surrounding(
            self._loop, self._weather, self._history, store, self._arrived, self._look_after, self._kept
        )
        self._boards = boards(plan.reading.strategy(protocols.resequencer), self._is_broken)
        application = Application(
            protocols, self._boards, tallies_of(self._lacks_something, events=protocols.events), ROUTES, self._fails
        )
        self._hosts = Hosts(world, random, application, plan, self._parked)
        self._restores = Restores(world, random, self._hosts, plan.restored)
        self._caretakers = Caretakers(world, random, self._hosts, application, plan)
        self._operators = Operators(world, random, self._hosts, application, plan)
        self._ahead = {source: random.uniform(-1, 1) * plan.wrong for source in ("web", "shop")}
        self._tries: Counter[str] = Counter()
        self._lost: list[Message] = []
        self._messages: dict[str, Message] = {}
        weights = (1 / (rank + 1) ** plan.skew for rank in range(plan.entities))
        self._cumulated = tuple(accumulate(weights))
        self._tallies = [str(number) for number in range(plan.entities)]

    def run(self) -> Report:
        """Play, drain, judge; what is wrong at once ends it there, so that its story ends with it."""
        try:
            self._until_idle(self._send(), self._caretakers.go_round())
            self._until_idle(self._caretakers.forget())
            self._send_very_late_copies()
            self._find_last_words()
            self._until_idle()
            self._until_idle(self._caretakers.finish(most=len(self._messages)))
            self._until_idle(self._caretakers.clean_up(most=len(self._messages)))
            self._until_idle(self._check_rest())
        except Interrupted:
            return self._report(self._history.violations)
        except Overdue as over:
            self._history.convict("termination", "", f"not everything came to rest: {over}")
        # First those that have a story.
        return self._report(sorted(judge(self._history), key=lambda item: not item.tally))

    def _report(self, violations: list[Violation]) -> Report:
        return Report(
            seed=self._seed,
            messages=len(self._history.orders),
            deliveries=self._hosts.deliveries,
            entities=len(self._history.writes),
            hours=self._loop.time() / HOUR,
            counted=self._counted,
            digest=self._history.digest(),
            violations=violations,
            story=self._history.story(violations[0]) if violations else [],
        )

    def _until_idle(self, *jobs: Coroutine[Any, Any, None]) -> None:
        tasks = [self._loop.create_task(job) for job in jobs]
        deadline = self._loop.time() + 2 * self._plan.span + PATIENCE + 4 * self._plan.retention
        self._loop.run_until_idle(deadline, unless=lambda: bool(self._history.violations))
        for task in tasks:
            task.result()

    async def _check_rest(self) -> None:
        if await self._caretakers.owes():
            self._history.convict("termination", "", "something is still owed or held, after the last round")
        for tally in self._caretakers.garbage():
            self._history.convict("no_garbage", tally, "a staged document is left that nothing refers to")

    async def _send(self) -> None:
        """Send everything, in bursts; then let the weather clear up."""
        plan, random = self._plan, self._random
        number = 0
        while number < plan.messages:
            for _ in range(min(random.randint(1, plan.burst), plan.messages - number)):
                order = self._order(number)
                self._accept(order, self._sent(order, number))
                number += 1
                if plan.gap:
                    await asyncio.sleep(random.expovariate(1 / plan.gap))
            self._restore()
            await asyncio.sleep(random.expovariate(1 / plan.pause))
        self._weather.calm = True

    def _sent(self, order: Order, number: int) -> Envelope:
        ahead = self._ahead[order.name.partition("-")[0]]
        envelope = envelope_of(order, START + timedelta(seconds=self._loop.time() + ahead))
        return timed(envelope, number) if self._random.random() < self._plan.timed else envelope

    def _restore(self) -> None:
        """Documents are put back, perhaps. Whoever sent what took place since the backup sends it again."""
        for name in self._restores.perhaps():
            pause = 10 ** self._random.uniform(-1, 3.5)
            self._hosts.enqueue(self._messages[name], pause)

    def _order(self, number: int) -> Order:
        plan, random = self._plan, self._random
        source = "web" if number % 3 else "shop"
        tally = self._any_tally()
        relays = tuple(
            self._any_tally() for _ in range(random.choice((1, 1, 2)) if random.random() < plan.relaying else 0)
        )
        name = f"{source}-{number // 3 if source == 'shop' else number}"
        if random.random() < plan.looking:
            return Order(name, tally, reports=random.choice((1, 1, 2)), looks=True)
        closes = random.random() < plan.closing
        asked = random.random() < plan.asking
        return Order(
            name=name,
            tally=tally,
            reports=1 if closes else random.choice((0, 1, 1, 1, 2)),
            relays=relays,
            shows=plan.reading.shows(random, tally),
            filler=random.choice(plan.fillers),
            closes=closes,
            refused=not asked and random.random() < plan.refusing,
            kept=random.random() < plan.keeping,
            asked=asked,
        )

    def _any_tally(self) -> str:
        return self._random.choices(self._tallies, cum_weights=self._cumulated)[0]

    def _accept(self, order: Order, envelope: Envelope) -> None:
        self._history.accepted(order)
        entity = (tallies if order.place is None else self._boards).ref_of(envelope)
        message = Message(order.name, entity, envelope, self._loop.time())
        self._messages[order.name] = message
        if order.asked:
            self._hosts.ask(message)
            return
        if order.place is None:
            self._hosts.enqueue(message)
        else:
            self._carry(message)
        while self._random.random() < self._weather.climate.copies:
            self._hosts.enqueue_copy(message, 10 ** self._random.uniform(-3, log10(2 * self._plan.retention)))

    def _carry(self, message: Message) -> None:
        """A queue carries a message to a board: out of turn, perhaps, or not at all."""
        weather = self._weather
        if weather.happens(self._plan.reading.losing, "queue: lost for good"):
            self._lost.append(message)
        else:
            out_of_turn = weather.happens(weather.climate.shuffled, "queue: out of turn")
            self._hosts.enqueue(message, 10 ** self._random.uniform(-2, 3.5) if out_of_turn else 0.0)

    def _arrived(self, output: Output) -> None:
        """A message reached its queue; from the queues of orders it is delivered."""
        if output.destination == ASKED:
            self._caretakers.answer(Envelope.read(output.envelope.text))
            return
        envelope = Envelope.read(output.envelope.text)
        known = self._messages.get(envelope.data.value["name"])
        if known is not None and (output.destination == REQUEUED or envelope.requeued):
            again = replace(known, envelope=envelope)
            if output.destination == REQUEUED:
                self._operators.sent(again)
            self._hosts.enqueue(again, output.delay)
            return
        relayed = self._history.published(output.envelope.text)
        if relayed is not None:
            self._accept(relayed, envelope)
        elif output.destination == RELAYED:
            self._hosts.enqueue_copy(replace(self._messages[envelope.data.value["name"]], envelope=envelope), 0.0)
        elif output.destination == SHOWN:
            # However old: a board knows every number that it has seen.
            self._carry(self._messages[envelope.data.value["name"]])

    def _find_last_words(self) -> None:
        """What was lost is found if it was the last of its channel: nobody could ever miss it."""
        places = {name: order.place for name, order in self._history.orders.items() if order.place is not None}
        last: dict[tuple[str, str], int] = {}
        for name, place in places.items():
            channel = self._messages[name].entity.id, place.source
            last[channel] = max(place.number, last.get(channel, 0))
        for message in self._lost:
            place = places[message.name]
            if place.number == last[message.entity.id, place.source]:
                self._hosts.enqueue(message)

    def _is_broken(self, name: str) -> bool:
        progress = 1.0 if self._weather.calm else self._loop.time() / self._plan.span
        return self._plan.reading.is_broken(name, progress)

    def _lacks_something(self, name: str) -> bool:
        if not (failures := self._plan.failures(name)):
            return False
        self._tries[name] += 1
        return self._tries[name] <= failures

    def _fails(self, name: str) -> bool:
        return self._history.orders[name].refused or self._plan.failures(name) > 0

    def _parked(self, name: str, envelope: Envelope) -> None:
        self._operators.parked(replace(self._messages[name], envelope=envelope))

    def _kept(self, park: Park) -> None:
        self._operators.kept(park)

    def _look_after(self, entity: EntityRef) -> None:
        self._caretakers.look_after(entity)

    def _send_very_late_copies(self) -> None:
        """Deliver some of the old messages once more, when nothing is under way any more."""
        for message in self._messages.values():
            order = self._history.orders[message.name]
            if self._random.random() < _VERY_LATE and not order.refused and not order.asked:
                self._hosts.enqueue_copy(message, self._random.random() * self._plan.retention)


def run_episode(seed: int, messages: int, protocols: Protocols | None = None) -> Report:
    """Run one episode; see `Episode`."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Every lost reply would be logged.
    try:
        return Episode(seed, messages, protocols).run()
    finally:
        logging.disable(before)
