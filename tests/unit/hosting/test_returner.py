"""Returned messages: through an adapter's queue, with their data in a blob, or grown too large."""

from __future__ import annotations

from dataclasses import replace

import pytest
from azure.functions.queue import QueueMessage

from exactlyonce import Resequencer, TryAgainLater
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.triggers import PlainJson, envelope_of
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.values.envelope import message_hash
from tests.samples import Deposit, accounts, deposit
from tests.unit.boards import BOARDS, scored
from tests.unit.bus import delivered
from tests.unit.hosting.settlers import Place, dated


@pytest.fixture
def place() -> Place:
    return Place()


class Away(AwaitedBlobs):
    """A container that does not answer."""

    async def read(self, name: str, limit: int) -> bytes | None:
        raise TryAgainLater(f"Whether blob {name!r} has {limit} bytes is not known.")


async def test_a_returned_message_of_an_adapter_is_an_envelope_that_bypasses_it(place: Place) -> None:
    kind = accounts()
    adapter = PlainJson(Deposit, "shop", lambda body: str(body["order"]), lambda _: place.clock.now())
    assert await place.settle(kind, b'{"order": 7, "account": "a"}', adapter=adapter) == "returned"
    (output,) = place.queue
    wire = QueueMessage(id="q-2", body=output.envelope.text.encode())  # type: ignore[no-untyped-call]
    await place.process().deliver(kind, envelope_of(wire, adapter))
    assert {commit.message for commit in place.facts().commits} == {message_hash("shop/7")}


async def test_a_returned_message_keeps_its_number_and_session(place: Place) -> None:
    boards = BOARDS.using(Resequencer())
    message = dated(scored(3))
    assert await place.settle(boards, message) == "returned"
    assert set(message.extensions) <= set(place.returned[0].extensions)


async def test_a_returned_message_keeps_its_data_in_the_blob(place: Place) -> None:
    kind, base = accounts(), "https://account.blob.core.windows.net/blobs"
    claims = ClaimChecks(AwaitedBlobs(MemoryBlobs(), base))
    left = await claims.left(dated(deposit("m-1")))
    assert await place.settle(kind, left, by=replace(place.settler, claims=claims)) == "returned"
    assert place.returned == [left.once_more(1)]


async def test_a_message_whose_data_cannot_be_fetched_is_returned(place: Place) -> None:
    kept, base = MemoryBlobs(), "https://account.blob.core.windows.net/blobs"
    left = await ClaimChecks(AwaitedBlobs(kept, base)).left(dated(deposit("m-1")))
    settles = replace(place.settler, claims=ClaimChecks(Away(kept, base)))
    assert await place.settle(accounts(), left, by=settles) == "returned"
    assert place.returned == [left.once_more()]
    with pytest.raises(TryAgainLater):
        await settles.settle(accounts(), delivered(left), "accounts")


@pytest.mark.parametrize("blobs", [False, True])
async def test_a_returned_message_too_large_for_its_queue_goes_by_reference_or_is_parked(
    place: Place, blobs: bool
) -> None:
    kind, settler = accounts(), place.settler
    bare = dated(deposit("m-1", padding=""))  # The message is as long as its queue takes.
    message = dated(deposit("m-1", padding="x" * (place.routes.limits["accounts"] - bare.to_json().size)))
    if blobs:
        base = "https://account.blob.core.windows.net/blobs"
        claims = ClaimChecks(AwaitedBlobs(MemoryBlobs(), base))
        returning = replace(settler.settler.returner, claims=claims)
        settler = replace(settler, settler=replace(settler.settler, returner=returning), claims=claims)
    assert await place.settle(kind, message, by=settler) == ("returned" if blobs else "parked")
    assert [item.reference is not None for item in place.returned] == ([True] if blobs else [])
