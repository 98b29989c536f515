"""The publisher: addresses and marks of outputs; and portions: a publish ends wherever a queue accepts anything at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce.drivers import publisher
from exactlyonce.drivers.publisher import LONGEST, PORTION, REMEMBERED_FOR, Address, Publisher
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import MemoryTransport, SendReply
from exactlyonce.values.frozen_json import Json


class Watch:
    """Seconds that only tests let go by."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds


class Queue:
    """A transport that accepts only the given outputs; the others of a portion may arrive all the same.

    Args:
        accepts: of each send, which outputs arrive.
        watch: on which each output takes so many seconds.
        takes: as many.
    """

    max_bytes = 1_000

    def __init__(
        self, accepts: Callable[[tuple[Output, ...]], Iterable[Output]], watch: Watch, takes: float = 0.0
    ) -> None:
        self._accepts = accepts
        self._watch = watch
        self._takes = takes
        self.sizes: list[int] = []
        self.arrived: list[str] = []

    async def send(self, _address: str, outputs: tuple[Output, ...]) -> SendReply:
        self._watch.seconds += self._takes * len(outputs)
        arrived = list(self._accepts(outputs))
        self.sizes.append(len(outputs))
        self.arrived += [output.id for output in arrived]
        return PUBLISHED if len(arrived) == len(outputs) else UNKNOWN


class Place:
    """A publisher for one queue."""

    def __init__(
        self,
        accepts: Callable[[tuple[Output, ...]], Iterable[Output]] = lambda outputs: outputs,
        takes: float = 0.0,
        *,
        remembers: bool = True,
    ) -> None:
        self.watch = Watch()
        self.queue = Queue(accepts, self.watch, takes)
        self.publisher = Publisher({"a": Address(self.queue, "queue-a")}, remembers=remembers, now=self.watch.now)

    async def publish(self, outputs: Iterable[Output]) -> bool:
        return await self.publisher.publish(Publish(tuple(outputs))) is PUBLISHED

    async def publish_to_the_end(self, outputs: tuple[Output, ...], most: int) -> int:
        """Publish until it is done, and return how often; all have arrived by then."""
        for times in range(1, most + 1):
            if await self.publish(outputs):
                assert set(self.queue.arrived) >= {output.id for output in outputs}
                return times
        pytest.fail(f"{len(set(self.queue.arrived))} of {len(outputs)} arrived after {most} times, and no end")


def many(number: int) -> tuple[Output, ...]:
    return tuple(Output(f"o-{item}", "a", Json.of({"id": item})) for item in range(number))


class Budget:
    """So many are accepted until it is filled again."""

    def __init__(self, size: int) -> None:
        self.size = self.left = size

    def __call__(self, outputs: tuple[Output, ...]) -> Iterable[Output]:
        taken = outputs[: self.left]
        self.left -= len(taken)
        return taken


class TestProgress:
    @given(st.integers(1, 1_000), st.integers(1, 300))
    async def test_a_queue_with_a_limit_per_call_gets_all_outputs_in_smaller_portions(
        self, number: int, at_once: int
    ) -> None:
        place = Place(lambda outputs: outputs[:at_once])
        assert await place.publish_to_the_end(many(number), 9) <= 1 + math.log2(PORTION)

    @given(st.integers(1, 300), st.integers(1, 200))
    async def test_a_queue_with_a_limit_per_publish_gets_all_outputs_after_several(
        self, number: int, each_time: int
    ) -> None:
        budget = Budget(each_time)
        place, outputs = Place(budget), many(number)
        times = 0
        while not await place.publish(outputs):
            times, budget.left = times + 1, each_time
            assert times <= 2 * number / each_time + math.log2(PORTION)
        assert set(place.queue.arrived) == {output.id for output in outputs}

    @pytest.mark.parametrize(("number", "chance", "most"), [(5_000, 0.001, 3), (5_000, 0.01, 40), (500, 0.1, 40)])
    async def test_occasional_failures_do_not_stop_a_publish(self, number: int, chance: float, most: int) -> None:
        random = Random(1)
        place = Place(lambda outputs: [output for output in outputs if random.random() >= chance])
        await place.publish_to_the_end(many(number), most)

    async def test_an_output_refused_for_ever_does_not_stop_the_others_and_stays_unpublished(
        self,
    ) -> None:
        outputs = many(1_000)
        place = Place(lambda given: [item for item in given if item.id != "o-500"])
        for _ in range(10):
            assert not await place.publish(outputs)
        assert set(place.queue.arrived) == {output.id for output in outputs if output.id != "o-500"}
        place.queue.sizes.clear()
        assert not await place.publish(outputs)
        assert place.queue.sizes == [1]

    async def test_without_memory_a_publish_goes_on_after_a_failed_portion_too(self) -> None:
        fails = iter([False, True, False])
        place = Place(lambda outputs: () if next(fails, False) else outputs, remembers=False)
        assert await place.publish(many(3 * PORTION))
        assert sum(place.queue.sizes) == 4 * PORTION


class TestPatience:
    async def test_a_queue_that_takes_nothing_is_asked_once_or_twice(self) -> None:
        place = Place(lambda _: ())
        assert not await place.publish(many(1))
        assert not await place.publish(many(3 * PORTION))
        assert place.queue.sizes == [1, 1, 1]

    async def test_portions_grow_again_with_what_is_accepted_and_not_with_single_messages(self) -> None:
        down = True
        place = Place(lambda outputs: () if down else outputs)
        assert not await place.publish(many(40))
        down = False
        for item in many(9):
            assert await place.publish((item,))
        place.queue.sizes.clear()
        assert await place.publish(many(3 * PORTION))
        assert place.queue.sizes == [20, 40, 80, PORTION, 3 * PORTION - 140 - PORTION]

    async def test_after_the_time_limit_the_rest_is_left_to_the_next_publish(self) -> None:
        place = Place(takes=LONGEST / PORTION)
        outputs = many(3 * PORTION)
        for times in (1, 2):
            assert not await place.publish(outputs)
            assert len(place.queue.arrived) == times * PORTION
        assert await place.publish(outputs)
        assert sorted(place.queue.arrived) == sorted(output.id for output in outputs)


class TestMemory:
    @pytest.fixture
    async def place(self) -> Place:
        """The first portion was accepted, and nothing since."""
        budget = Budget(PORTION)
        place = Place(budget)
        assert not await place.publish(many(PORTION + 1))
        budget.left = 10**9
        place.queue.arrived.clear()
        return place

    async def test_accepted_outputs_are_known_in_any_later_publish(self, place: Place) -> None:
        assert await place.publish((*many(3), Output("other", "a", Json.of({}))))
        assert place.queue.arrived == ["other"]

    async def test_outputs_of_a_complete_publish_are_sent_again_by_the_next(self, place: Place) -> None:
        assert await place.publish(many(PORTION + 1))
        assert place.queue.arrived == [f"o-{PORTION}"]
        assert await place.publish(many(3))
        assert place.queue.arrived[1:] == ["o-0", "o-1", "o-2"]

    async def test_an_output_with_the_same_id_and_another_content_is_sent(self, place: Place) -> None:
        assert await place.publish((Output("o-0", "a", Json.of({"id": "else"})),))
        assert place.queue.arrived == ["o-0"]

    async def test_accepted_outputs_are_forgotten_after_minutes(self, place: Place) -> None:
        place.watch.seconds += REMEMBERED_FOR
        assert await place.publish(many(1))
        assert place.queue.arrived == ["o-0"]

    async def test_accepted_outputs_are_remembered_while_retries_go_on(self) -> None:
        refused = Output("refused", "a", Json.of({}))
        place = Place(lambda outputs: [item for item in outputs if item is not refused])
        assert not await place.publish((*many(PORTION), refused))
        for _ in range(3):
            place.watch.seconds += REMEMBERED_FOR / 2
            assert not await place.publish((*many(1), refused))
        assert await place.publish(many(1))
        assert place.queue.arrived == [output.id for output in many(PORTION)]

    async def test_the_memory_of_accepted_outputs_is_bounded_and_drops_the_oldest(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(publisher, "MOST_REMEMBERED", 2)
        place = Place()
        memory = publisher.Accepted(place.watch.now)
        memory.note(many(3))
        assert [output.id for output in memory.missing(many(3))] == ["o-0"]


OUTPUTS = tuple(Output(f"o-{number}", name, Json.of({"id": number})) for number, name in enumerate(("a", "b", "a")))


@pytest.fixture
def transport() -> MemoryTransport:
    return MemoryTransport()


async def test_each_output_goes_to_the_address_of_its_destination(transport: MemoryTransport) -> None:
    publisher = Publisher({"a": Address(transport, "queue-a"), "b": Address(transport, "queue-b")})
    assert await publisher.publish(Publish(OUTPUTS)) is PUBLISHED
    assert transport.queues == {"queue-a": [OUTPUTS[0], OUTPUTS[2]], "queue-b": [OUTPUTS[1]]}


@pytest.mark.parametrize("outcome", [(True, False), (False, False)])
async def test_an_output_that_may_not_have_arrived_leaves_the_outcome_unknown(
    transport: MemoryTransport, outcome: tuple[bool, bool]
) -> None:
    mute = MemoryTransport(outcome=lambda _: outcome)
    publisher = Publisher({"a": Address(transport, "queue-a"), "b": Address(mute, "queue-b")})
    assert await publisher.publish(Publish(OUTPUTS)) is UNKNOWN
    assert len(transport.queues["queue-a"]) == 2


async def test_an_output_is_sent_though_the_destination_of_another_output_is_gone(transport: MemoryTransport) -> None:
    publisher = Publisher({"a": Address(transport, "queue-a")})
    assert publisher.destinations == {"a"}
    for _ in range(2):
        assert await publisher.publish(Publish(OUTPUTS)) is UNKNOWN
    assert [output.id for output in transport.queues["queue-a"]] == ["o-0", "o-2"]


async def test_a_marked_publish_has_fresh_ids_for_the_broker_and_the_same_envelopes(
    transport: MemoryTransport,
) -> None:
    marks: Iterator[str] = iter(("first", "second"))
    publisher = Publisher({name: Address(transport, name) for name in ("a", "b")}, lambda: next(marks))
    for _ in range(2):
        assert await publisher.publish(Publish(OUTPUTS[:2])) is PUBLISHED
    assert [queue.id for queue in transport.queues["a"]] == ["o-0#first", "o-0#second"]
    assert {queue.envelope for queue in transport.queues["a"]} == {OUTPUTS[0].envelope}
    assert {queue.destination for queue in transport.queues["b"]} == {"b"}
