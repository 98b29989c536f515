"""Operators: they look into what was parked, mend what it was parked for, and send it again, or see that it took place.

What is too old to be sent under the identity it has they send as a new message, once they see that it has not taken place, and
that nobody could still take a copy of it for new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any, Final

from devtools.simulation.application import Application
from devtools.simulation.host import Hosts, Message
from devtools.simulation.loop import START
from devtools.simulation.plans import Plan
from devtools.simulation.wire import Surrounding
from exactlyonce import Envelope
from exactlyonce.effects import Park
from exactlyonce.handling.attempts import key_of
from exactlyonce.hosting.giving_up import nobodys
from exactlyonce.identity import EntityRef
from exactlyonce.records import Output

_SLOW: Final = 0.1
"""How often nobody comes to look for days."""


class Operators:
    """Whoever looks after parked messages.

    Args:
        world: what all processes share.
        random: the source of chance.
        hosts: whose processes they use.
        application: whose messages they are.
        plan: for how long messages are remembered.
    """

    def __init__(self, world: Surrounding, random: Random, hosts: Hosts, application: Application, plan: Plan) -> None:
        self._world = world
        self._random = random
        self._hosts = hosts
        self._application = application
        self._plan = plan
        self._numbers = count(1)
        self._times: Counter[str] = Counter()

    def parked(self, message: Message) -> None:
        """A message was parked, or put aside. One that always fails stays there."""
        if not self._world.history.orders[message.name].refused:
            self._times[message.name] += 1
            self._later(lambda: self._look_into(message), after=2.0 ** min(self._times[message.name], 20))

    def kept(self, park: Park) -> None:
        """An output was parked, since it is too old to be published."""
        data = park.message.envelope.value.get("data") or {}
        if "name" not in data:
            return  # A board asks again for what it lacks.
        self._world.weather.counted["too old to be published"] += 1
        self._world.history.keep(data["name"])
        self._later(lambda: self._look_into_output(park, data["name"]))

    async def _look_into(self, message: Message) -> None:
        key, process = key_of(message.envelope), self._hosts.any_process()
        place = next((one for one in self._places(message.entity) if self._lies_in(one, key)), None)
        if place is None:
            self._world.history.requeue(message.name)  # Somebody has sent it again since.
            return
        requeued = await process.requeue(place, key) if process is not None else None
        outcome = "unknown" if requeued is None else requeued.outcome
        if requeued is not None:
            self._world.weather.counted[f"requeued: {outcome}"] += 1
        if outcome == "sent":
            self._world.history.requeue(message.name)
        elif outcome in ("too old", "age unknown"):
            await self._look_closely(message, place, key)
        else:
            self._later(lambda: self._look_into(message))

    async def _look_closely(self, message: Message, place: EntityRef, key: str) -> None:
        """What is to become of a message that nobody may send again under its identity."""
        history, name, envelope = self._world.history, message.name, message.envelope
        board = self._application.is_board(message.entity)
        took_place = not board and history.is_done(name)
        if not (took_place or board) and (history.copies.exist(name) or not self._is_forgotten(envelope)):
            self._later(lambda: self._look_into(message), after=self._plan.retention / 10)
        elif not await self._taken_out(place, key):
            self._later(lambda: self._look_into(message))
        elif took_place:
            self._world.weather.counted["discarded"] += 1
            history.discard(name)
        else:
            history.requeue(name)
            # A board knows its numbers for ever, so that it is sent what it was sent.
            self._hosts.enqueue(message if board else replace(message, envelope=self._renewed(envelope)))

    async def _look_into_output(self, park: Park, name: str) -> None:
        message, history = park.message, self._world.history
        if not self._lies_in(park.entity, message.message):
            return
        envelope = Envelope.read(message.envelope.text)
        if name not in history.sent and not self._is_forgotten(envelope):
            self._later(lambda: self._look_into_output(park, name), after=self._plan.retention / 10)
        elif not await self._taken_out(park.entity, message.message):
            self._later(lambda: self._look_into_output(park, name))
        elif name in history.sent:
            self._world.weather.counted["discarded"] += 1
        else:
            renewed = self._renewed(envelope)
            self._world.arrived(Output(renewed.id, message.destination or "", renewed.to_json()))

    def _is_forgotten(self, envelope: Envelope) -> bool:
        """Whether nobody takes copies of a message for new any more."""
        now = START + timedelta(seconds=self._world.loop.time())
        judged = self._plan.lifetimes.oldest_judged(now) + timedelta(days=1)
        return envelope.time is not None and now - envelope.time > judged

    def _renewed(self, envelope: Envelope) -> Envelope:
        """The message as a new one."""
        self._world.weather.counted["sent as a new message"] += 1
        now: datetime = START + timedelta(seconds=self._world.loop.time())
        return replace(envelope, id=f"{envelope.id}-renewed-{next(self._numbers)}", time=now)

    async def _taken_out(self, place: EntityRef, key: str) -> bool:
        """Delete what is parked; whether it is gone."""
        process = self._hosts.any_process()
        if process is not None:
            await process.discard(place, key)
        return not self._lies_in(place, key)

    def _places(self, entity: EntityRef) -> tuple[EntityRef, EntityRef]:
        return entity, nobodys(self._application.type_of(entity))

    def _lies_in(self, place: EntityRef, key: str) -> bool:
        partition = self._world.store.library.get(place.key)
        return partition is not None and partition.newest(f"parked:{key}") is not None

    def _later(self, job: Callable[[], Coroutine[Any, Any, None]], after: float = 0.0) -> None:
        loop = self._world.loop
        slow = self._random.random() < _SLOW
        pause = self._random.random() * self._plan.retention if slow else 10 ** self._random.uniform(-1, 3)
        loop.call_later(after + pause, lambda: loop.create_task(job()))
