"""One episode: a seed, a climate, some thousands of messages, calm, judgment."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from math import log10
from random import Random
from typing import Any, Final

from exactlyonce import Envelope
from exactlyonce.effects.library import Park
from exactlyonce.records.outputs import Output
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.loop import START, Interrupted, Overdue, VirtualClock, VirtualLoop
from exactlyonce.values.identity import EntityRef
from verification.simulation.application import Application
from verification.simulation.caretakers import Caretakers
from verification.simulation.history import History, Violation
from verification.simulation.host import Hosts, Message
from verification.simulation.judge import judge
from verification.simulation.model import Order
from verification.simulation.operators import Operators
from verification.simulation.owing import Owing
from verification.simulation.plans import Plan
from verification.simulation.protocols import Protocols, shipped
from verification.simulation.sources import Sources, with_place
from verification.simulation.weather import HOUR, Climate, Weather
from verification.simulation.wire import Surrounding
from verification.simulation.workload import (
    ASKED,
    RELAYED,
    REQUEUED,
    SHOWN,
    boards,
    envelope_of,
    routes_of,
    tallies,
    tallies_of,
)

PATIENCE: Final = 30 * 24 * HOUR
"""How long after the last fault everything may take to come to rest, in virtual seconds."""
_TIMERS_A_MESSAGE: Final = 1000  # A batch comes again as a whole: the worst climates need hundreds.
_VERY_LATE: Final = 0.03  # Share of messages that are delivered once more when all is done.


@dataclass
class Report:
    """What an episode came to.

    Attributes:
        counted: faults by kind, and witnesses.
        digest: equal for equal histories.
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
        seed: of everything.
        messages: how many are sent from outside.
        protocols: in place of the shipped ones, of which the seed decides.
    """

    def __init__(self, seed: int, messages: int, protocols: Protocols | None = None) -> None:
        protocols = protocols or shipped(seed)
        self._seed = seed
        self._tells_forks = protocols.protocol == "outbox"
        self._random = random = Random(seed)
        self._plan = plan = Plan.draw(random, messages, streams=protocols.protocol == "stream")
        self._counted: Counter[str] = Counter()
        self._loop = VirtualLoop(limit=_TIMERS_A_MESSAGE * (messages + 100))  # type: ignore[abstract]  # It has no I/O.
        self._weather = Weather(random, Climate.draw(random, slow=plan.crowded), self._counted)
        self._history = History(self._loop.time, plan.reading.promises)
        store = MemoryStore(VirtualClock(self._loop).now, self._weather)
        owing = Owing(self._loop.time)
        world = Surrounding(
            self._loop, self._weather, self._history, store, self._arrived, self._look_after, owing, self._kept
        )
        self._boards = boards(plan.reading.strategy(protocols.resequencer), self._is_broken)
        self._sources = sources = Sources(seed, messages)
        routes = routes_of(numbered=sources.many > 0)
        application = Application(protocols, self._boards, tallies_of(self._lacks_something), routes, self._fails)
        settings = plan.settings(application, sources.channels)
        self._hosts = Hosts(world, random, settings, plan.processes, self._parked)
        self._caretakers = Caretakers(world, random, self._hosts, application, plan)
        self._operators = Operators(world, random, self._hosts, application, plan)
        self._ahead = random.uniform(-1, 1) * plan.wrong
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
            self._check_rest()
        except Interrupted:
            return self._report(self._history.violations)
        except Overdue:
            self._history.convict("termination", "", "something was still under way long after the last fault")
        # First those that have a story.
        return self._report(sorted(judge(self._history), key=lambda one: not one.tally))

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
        """Run until nothing is under way any more."""
        tasks = [self._loop.create_task(job) for job in jobs]
        deadline = self._loop.time() + 2 * self._plan.span + PATIENCE + 4 * self._plan.retention
        self._loop.run_until_idle(deadline, unless=lambda: bool(self._history.violations))
        for task in tasks:
            task.result()

    def _check_rest(self) -> None:
        if self._caretakers.owed:
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
                self._accept(order, self._sent(order))
                number += 1
                if plan.gap:
                    await asyncio.sleep(random.expovariate(1 / plan.gap))
            self._restore()
            await asyncio.sleep(random.expovariate(1 / plan.pause))
        self._weather.calm = True

    def _sent(self, order: Order) -> Envelope:
        """An order as its sender sends it."""
        envelope = envelope_of(order, self._time_of(order))
        if not order.name.startswith("shop"):
            return envelope
        return self._sources.numbered(order.name, tallies.ref_of(envelope), envelope)

    def _restore(self) -> None:
        """A source is restored, perhaps, and gives a number a second time: to a message that nobody may take."""
        restored = self._sources.restored(self._history.acknowledged)
        if restored is not None and self._tells_forks:
            entity, place = restored
            order = Order(f"shop-again{len(self._messages)}", entity.id, forked=True)
            self._weather.counted["number given twice"] += 1
            self._accept(order, with_place(envelope_of(order, self._time_of(order)), place))

    def _time_of(self, order: Order) -> datetime:
        """The time by the clock of an order's sender."""
        ahead = self._ahead if order.name.startswith("shop") else 0.0
        return START + timedelta(seconds=self._loop.time() + ahead)

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
        return Order(
            name=name,
            tally=tally,
            reports=1 if closes else random.choice((0, 1, 1, 1, 2)),
            relays=relays,
            shows=plan.reading.shows(random, tally),
            filler=random.choice(plan.fillers),
            closes=closes,
            refused=random.random() < plan.refusing,
        )

    def _any_tally(self) -> str:
        return self._random.choices(self._tallies, cum_weights=self._cumulated)[0]

    def _accept(self, order: Order, envelope: Envelope) -> None:
        self._history.accepted(order)
        entity = (tallies if order.place is None else self._boards).ref_of(envelope)
        message = Message(order.name, entity, envelope, self._loop.time())
        self._messages[order.name] = message
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
            self._hosts.enqueue_copy(self._messages[output.envelope.value["data"]["name"]], 0.0)
        elif output.destination == SHOWN:
            # However old: a board knows every number that it has seen.
            self._carry(self._messages[output.envelope.value["data"]["name"]])

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
        """Whether the handler of boards raises for a message, until it is fixed."""
        progress = 1.0 if self._weather.calm else self._loop.time() / self._plan.span
        return self._plan.reading.is_broken(name, progress)

    def _lacks_something(self, name: str) -> bool:
        """Whether the handler of tallies raises for a message this time."""
        if not (failures := self._plan.failures(name)):
            return False
        self._tries[name] += 1
        return self._tries[name] <= failures

    def _fails(self, name: str) -> bool:
        """Whether the handler raises for a message at some time."""
        return self._history.orders[name].hopeless or self._plan.failures(name) > 0

    def _parked(self, name: str, envelope: Envelope) -> None:
        self._operators.parked(replace(self._messages[name], envelope=envelope))

    def _kept(self, park: Park) -> None:
        self._operators.kept(park)

    def _look_after(self, entity: EntityRef) -> None:
        self._caretakers.look_after(entity)

    def _send_very_late_copies(self) -> None:
        """Deliver some of the old messages once more, when nothing is under way any more."""
        for message in self._messages.values():
            if self._random.random() < _VERY_LATE and not self._history.orders[message.name].hopeless:
                self._hosts.enqueue_copy(message, self._random.random() * self._plan.retention)


def run_episode(seed: int, messages: int, protocols: Protocols | None = None) -> Report:
    """Run one episode; see `Episode`."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Every lost reply would be logged.
    try:
        return Episode(seed, messages, protocols).run()
    finally:
        logging.disable(before)
