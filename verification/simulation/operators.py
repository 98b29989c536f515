"""Operators: they look into parked messages, remove the cause, and requeue them, or see that they took place.

What is too old to be sent under the identity it has they send as a new message, once they see that it has not taken place, and
that nobody could still take a copy of it for new. They do so once: of what lies in two places, such as a message that was
parked and a copy of it that was put aside, the other is discarded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from random import Random
from typing import Any, Final, TypeVar

from exactlyonce import Envelope
from exactlyonce.effects.library import Park
from exactlyonce.hosting.deliveries.settlement import aside_place
from exactlyonce.hosting.upkeep.operator import Operator
from exactlyonce.testing.loop import START
from exactlyonce.values.envelope import EntityRef, key_of
from verification.simulation.host import Hosts
from verification.simulation.plans import Plan
from verification.simulation.processes import Message, parked_etag
from verification.simulation.protocols import Application
from verification.simulation.weather import HOUR
from verification.simulation.wire import Surrounding
from verification.simulation.workload import REQUEUED

Result = TypeVar("Result")
_SLOW: Final = 0.1
"""How often nobody comes to look for days."""


class Operators:
    """They look after parked messages."""

    def __init__(self, world: Surrounding, random: Random, hosts: Hosts, application: Application, plan: Plan) -> None:
        self._world = world
        self._random = random
        self._hosts = hosts
        self._application = application
        self._plan = plan
        self._times: Counter[str] = Counter()
        self._made_new: dict[str, tuple[EntityRef, str]] = {}
        self._latest: dict[str, str] = {}

    def parked(self, message: Message) -> None:
        """A message was parked, or put aside. One that always fails stays there."""
        if not self._world.history.orders[message.name].refused:
            self._times[message.name] += 1
            self._later(lambda: self._look_into(message), after=2.0 ** min(self._times[message.name], 20))

    def sent(self, message: Message) -> None:
        """A message that was parked reached its queue once more."""
        self._latest[message.name] = key_of(message.envelope)

    def kept(self, park: Park) -> None:
        """An output was parked, since it is too old to be published."""
        data = park.message.envelope.value.get("data") or {}
        if "name" not in data:
            return  # A board asks again for what it lacks.
        self._world.weather.counted["too old to be published"] += 1
        self._world.history.keep(data["name"])
        self._later(lambda: self._look_into_output(park, data["name"]))

    async def _look_into(self, message: Message) -> None:
        history, name, key = self._world.history, message.name, key_of(message.envelope)
        place = next((item for item in self._places(message.entity) if self._lies_in(item, key)), None)
        if place is None:
            history.requeue(name)  # Somebody has sent it again since.
            return
        if self._is_superseded(name, place, key):
            await self._operate(lambda operator: operator.discard(place.key, key))
            self._later(lambda: self._look_into(message))
            return
        outcome = await self._sent_again(place, key, REQUEUED)
        if outcome == "sent":
            history.requeue(name)
        elif outcome != "too old":
            self._later(lambda: self._look_into(message))
        elif history.is_done(name):
            self._later(lambda: self._discarded(message, place, key))
        elif history.copies.exist(name) or not self._is_forgotten(message.envelope):
            self._later(lambda: self._look_into(message), after=self._plan.retention / 10)
        else:
            self._made_new[name] = place, key
            await self._renewed(place, key)
            self._later(lambda: self._look_into(message))

    def _is_superseded(self, name: str, place: EntityRef, key: str) -> bool:
        """Whether a message that lay in two places was made a new one in the other: a second new one would be applied, too."""
        made_new = self._made_new.get(name)
        return made_new not in (None, (place, key)) and key != self._latest.get(name)

    async def _look_into_output(self, park: Park, name: str) -> None:
        place, key = park.entity, park.message.message
        if not self._lies_in(place, key):
            return
        if name in self._world.history.sent:
            self._world.weather.counted["discarded"] += 1
            await self._operate(lambda operator: operator.discard(place.key, key))
            self._later(lambda: self._look_into_output(park, name))
        elif not self._is_forgotten(Envelope.read(park.message.envelope.text)):
            self._later(lambda: self._look_into_output(park, name), after=self._plan.retention / 10)
        else:
            if await self._sent_again(place, key, None) == "too old":
                await self._renewed(place, key)
            self._later(lambda: self._look_into_output(park, name))

    async def _sent_again(self, place: EntityRef, key: str, destination: str | None) -> str:
        requeued = await self._operate(lambda operator: operator.requeue(place.key, key, destination))
        if requeued is None:
            return "unknown"
        self._world.weather.counted[f"requeued: {requeued.outcome}"] += 1
        return requeued.outcome

    async def _renewed(self, place: EntityRef, key: str) -> None:
        renewed = await self._operate(lambda operator: operator.renew(place.key, key))
        if renewed is not None and renewed.outcome == "renewed":
            self._world.weather.counted["made a new message"] += 1

    async def _discarded(self, message: Message, place: EntityRef, key: str) -> None:
        self._world.weather.counted["discarded"] += 1
        await self._operate(lambda operator: operator.discard(place.key, key))
        if self._lies_in(place, key):
            self._later(lambda: self._discarded(message, place, key))
        else:
            self._world.history.discard(message.name)

    async def _operate(self, request: Callable[[Operator], Coroutine[Any, Any, Result]]) -> Result | None:
        process = self._hosts.any_process()
        return None if process is None else await process.operate(request)

    def _is_forgotten(self, envelope: Envelope) -> bool:
        now = START + timedelta(seconds=self._world.loop.time())
        judged = self._plan.lifetimes.oldest_judged(now) + timedelta(days=1)
        time = envelope.judged_by
        return time is not None and now - time > judged

    def _places(self, entity: EntityRef) -> tuple[EntityRef, EntityRef]:
        return entity, aside_place(self._application.type_of(entity))

    def _lies_in(self, place: EntityRef, key: str) -> bool:
        return parked_etag(self._world.store, place, key) is not None

    def _later(self, job: Callable[[], Coroutine[Any, Any, None]], after: float = 0.0) -> None:
        loop = self._world.loop
        slow = self._random.random() < _SLOW
        longest = HOUR if self._plan.restored else self._plan.retention
        pause = self._random.random() * longest if slow else 10 ** self._random.uniform(-1, 3)
        loop.call_later(after + pause, lambda: loop.create_task(job()))
