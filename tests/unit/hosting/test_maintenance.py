"""Replays of a stream: in all parts, with the ids and numbers of the first time."""

from __future__ import annotations

import pytest

from exactlyonce import Destination, Envelope, VersionStream
from exactlyonce.effects.companions import DeleteCompanions, FindEntries, FoundCompanions
from exactlyonce.errors import InvalidMessage
from exactlyonce.protocols.resequencer.gaps import REPLAY
from exactlyonce.protocols.stream.replay import Missing
from exactlyonce.records.companions import id_of
from exactlyonce.records.outbox import Output
from exactlyonce.testing.world import World
from exactlyonce.values.frozen_json import Json
from tests.samples import Deposited, accounts, deposit
from tests.unit.hosting.settlers import maintenance

RECEIPTS = Destination("receipts", receives=(Deposited,), to="reader", entity_by=lambda _: "b-1", ordered=True)
KIND = accounts(VersionStream(snapshot_every=2))
LAST = 7


class Place(World):
    """A stream of several parts, all of whose outputs were sent."""

    def __init__(self) -> None:
        super().__init__((RECEIPTS,))
        self.ref = KIND.ref("a")
        self.maintenance = maintenance(self)

    async def send(self) -> tuple[Output, ...]:
        """Process a message for each version; return the outputs."""
        process = self.process()
        for number in range(1, LAST + 1):
            await process.deliver(KIND, deposit(f"m-{number}", "a"))
        return self.published

    @property
    def channel(self) -> str:
        """That of the receipts."""
        (channel,) = {output.place.channel for output in self.published if output.place is not None}
        return channel


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize(("first", "last"), [(1, LAST), (2, LAST - 1), (3, 3), (LAST, 2 * LAST)])
async def test_a_replay_sends_all_outputs_of_its_versions_unchanged(place: Place, first: int, last: int) -> None:
    sent = await place.send()
    again = min(last, LAST) - first + 1
    assert await place.maintenance.replay(KIND, place.ref, (first, last)) == again
    assert place.published[LAST:] == sent[first - 1 : last]


async def test_a_replay_of_missing_numbers_sends_only_those(place: Place) -> None:
    sent = await place.send()
    missing = Missing(place.channel, 3, 6)
    assert await place.maintenance.replay(KIND, place.ref, (1, LAST), missing) == 4
    assert place.published[LAST:] == sent[2:6]


async def test_a_replay_request_is_answered_with_its_numbers(place: Place) -> None:
    sent = await place.send()
    assert await place.maintenance.answer(KIND, request(place, 2, 6)) == 5
    assert place.published[LAST:] == sent[1:6]


async def test_a_replay_request_for_deleted_versions_is_refused(place: Place) -> None:
    await place.send()
    driver = place.maintenance.driver
    found = await driver.run(iter(FindEntries(place.ref, ((1, LAST),), None)))
    assert isinstance(found, FoundCompanions)
    taken = tuple((id_of(place.ref, entry), etag) for entry, etag in found.companions)
    await driver.run(iter(DeleteCompanions(place.ref, taken)))
    with pytest.raises(InvalidMessage, match=r"numbers 2 to 6 .* its stream has none of them"):
        await place.maintenance.answer(KIND, request(place, 2, 6))
    assert len(place.published) == LAST


def request(place: Place, first: int, last: int) -> Envelope:
    """A replay request of a read model."""
    asked = {"source": place.ref.source, "channel": place.channel, "first": first, "last": last}
    return Envelope("board/b-1", "r-1", REPLAY, Json.of(asked))
