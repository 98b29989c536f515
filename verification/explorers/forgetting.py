"""Worlds in which clean-up forgets channels, at any moment: no clock is part of the argument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exactlyonce.errors import ForgottenChannel
from exactlyonce.protocols.outbox.clean_channels import Forgot
from verification.explorers.explorer import Explorer
from verification.explorers.reductions import State
from verification.world.scenario import PLACES
from verification.world.store import Store
from verification.world.tasks import Start
from verification.world.workers import Worker

FORGETTINGS: Final = PLACES["forgettings"]
FORGOT: Final = "channels were forgotten"
REFUSED: Final = "a message of a forgotten channel was refused"


class ForgettingExplorer(Explorer):
    """Explores a scenario whose channels are forgotten. A message that is refused goes to the settler at once."""

    def start(self) -> State:
        """The state in which nothing has happened."""
        store, queue, workers, delayed, left = super().start()
        settled = (0,) * (2 * len(self.keys) - len(queue))
        return store, (*queue, *settled), workers, delayed, left

    def _chores(self, entity: int, state: State, others: tuple[Worker, ...]) -> Iterator[tuple[int | None, Start]]:
        yield from super()._chores(entity, state, others)
        store, left = state[0], state[4]
        if left[FORGETTINGS] and _lie_apart(store, entity):
            yield FORGETTINGS, Start("forget channels", entity)

    def _settled(self, worker: Worker, store: Store, violation: str | None) -> tuple[Worker, str | None, bool]:
        situation = worker.situation
        refused = () if situation is None else self.workers.failed(worker, (ForgottenChannel,))
        if situation is not None and isinstance(situation.result, Forgot) and situation.result.channels:
            self.witnessed.add(FORGOT)
        if not refused:
            return super()._settled(worker, store, violation)
        (key,) = refused
        self.witnessed.add(REFUSED)
        number = self.keys.index(key)
        settler = self.workers.settle(self.workers.following(worker), len(self.keys) + number)
        return settler, violation or self._wrong_refusal(number, store), False

    def _wrong_refusal(self, number: int, store: Store) -> str | None:
        """What is wrong with refusing a message: its channel is known, or had a gap and so could not be forgotten."""
        key, place = self.keys[number], self.scenario.place(number)
        assert place is not None  # noqa: S101  # Foreign messages have no channel.
        ledger = store.entities[0].ledger
        committed = {one for one, _ in store.committed}
        received = {
            other.number
            for index, one in enumerate(self.keys)
            if one in committed and (other := self.scenario.place(index)) and other.channel == place.channel
        }
        if any(channel.id == place.channel for channel in ledger.channels):
            return f"no_failure: {key} is refused, though its channel is in the ledger"
        if received != set(range(1, len(received) + 1)):
            return f"no_failure: {key} is refused, though its channel had a gap and could not be forgotten"
        return None


def _lie_apart(store: Store, entity: int) -> bool:
    """Whether channels have documents."""
    return any(id.startswith("channel:") for id in store.libraries[entity].now)
