"""What the broker takes no more of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local_service_bus.broker.broker import Broker
from local_service_bus.broker.messages import Content
from local_service_bus.broker.refusals import RefusedError
from local_service_bus.topology import Queue, Topology


def of_a_message(id: str) -> Content:
    return Content(payload=b"", message_id=id)


def of_a_session(id: str) -> Content:
    return Content(payload=b"", message_id="1", session_id=id)


@pytest.mark.parametrize("character", ["x", "ж", "🎯"])
@pytest.mark.parametrize("id", [of_a_message, of_a_session])
def test_ids_have_128_characters_as_utf_16_counts_them(id: Callable[[str], Content], character: str) -> None:
    broker = Broker(Topology((Queue("q"),)), lambda: 0.0, lambda: pytest.fail("nothing is locked"))
    most = 128 * 2 // len(character.encode("utf-16-le"))
    broker.entrance("q").send([id(most * character)])
    with pytest.raises(RefusedError, match="longer than 128"):
        broker.entrance("q").send([id((most + 1) * character)])
    assert broker.counts("q").active == 1
