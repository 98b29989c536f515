"""The publisher: addresses of destinations, replies, and marks for outputs that are sent again on purpose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exactlyonce.drivers.publisher import Address, Publisher
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.records.outbox import Output
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.frozen_json import Json

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


async def test_what_has_a_destination_is_sent_though_that_of_another_output_is_gone(transport: MemoryTransport) -> None:
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
