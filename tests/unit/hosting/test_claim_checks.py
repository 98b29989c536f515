"""Claim checks: data in blobs of the application's container, written and fetched."""

from __future__ import annotations

from typing import Any

import azure.functions as func
import pytest

from exactlyonce import Colocated, Destination, Entity, Envelope, Outbox, TryAgainLater, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.effects.library import WriteOnce
from exactlyonce.errors import HandlerFailed, MalformedMessage, OutputTooLarge
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.triggers import Failures
from exactlyonce.records.blobs import MAX_BLOB_BYTES, Blob
from exactlyonce.stores.blobs.port import AwaitedBlobs, MemoryBlobs
from exactlyonce.testing.world import World
from exactlyonce.values.frozen_json import Json
from tests.samples import Deposited, accounts, breaking, deposit
from tests.unit.hosting.settlers import dated, parked, settler

BASE = "https://account.blob.core.windows.net/blobs"
RECEIPTS = Destination("receipts", receives=(Deposited,))
LETTER = Envelope("web", "m-1", "letter", Json.of({"text": "ÄÖÜ" * 1_000}))


class Place:
    """Blobs in memory, and claim checks."""

    def __init__(self, *, answered: bool = True) -> None:
        self.blobs = MemoryBlobs(outcome=lambda _: (True, answered))
        self.claims = ClaimChecks(AwaitedBlobs(self.blobs, BASE))

    def holding(self, content: bytes, name: str = "a/b") -> Envelope:
        """A message whose data is this blob."""
        self.blobs.perform(WriteOnce((Blob(name, content, "application/json"),)))
        return LETTER.by_reference(f"{BASE}/{name}")


async def test_data_written_to_a_blob_is_redeemed() -> None:
    place = Place()
    left = await place.claims.left(LETTER)
    assert place.claims.claims(left)
    assert len(left.to_json().text) < 500
    assert await place.claims.redeemed(Envelope.read(left.to_json().text)) == LETTER


async def test_the_same_message_gets_the_same_blob_and_any_other_message_another() -> None:
    place = Place()
    first = await place.claims.left(LETTER)
    assert await place.claims.left(LETTER) == first
    others = (
        Envelope("web", "m-2", "letter", LETTER.data),
        Envelope("app", "m-1", "letter", LETTER.data),
        LETTER.with_data(Json.of({"text": "another under the same id"})),
    )
    addresses = {(await place.claims.left(other)).reference for other in others}
    assert len(addresses | {first.reference}) == 4
    assert await place.claims.redeemed(first) == LETTER


async def test_without_a_reply_the_error_says_to_send_again() -> None:
    with pytest.raises(TryAgainLater, match=r"web/m-1.*under the same id"):
        await Place(answered=False).claims.left(LETTER)


async def test_data_too_large_for_a_blob_is_refused() -> None:
    place = Place()
    with pytest.raises(OutputTooLarge, match=f"web/m-1 has {MAX_BLOB_BYTES + 1} bytes"):
        await place.claims.left(LETTER.with_data(Json('"' + "x" * (MAX_BLOB_BYTES - 1) + '"')))
    assert place.blobs.written == {}


async def test_a_message_that_could_not_be_read_is_not_written() -> None:
    place = Place()
    with pytest.raises(MalformedMessage, match="2000 characters"):
        await place.claims.left(Envelope("web", "m" * 2_000, "letter", LETTER.data))
    assert place.blobs.written == {}


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/blobs/a/b",
        "http://account.blob.core.windows.net/blobs/a/b",
        "https://account.blob.core.windows.net/blobs2/a/b",
        "https://account.blob.core.windows.net/other/a/b",
        "https://account.blob.core.windows.net.evil.example/blobs/a/b",
        "https://account.blob.core.windows.net@evil.example/blobs/a/b",
        BASE,
        f"{BASE}/",
        f"{BASE}//a",
        f"{BASE}/../other/a",
        f"{BASE}/a/../../other/a",
        f"{BASE}/%2E%2E/other/a",
        f"{BASE}/a/./b",
        f"{BASE}/a/b?sig=x",
        f"{BASE}/a/b#x",
        f"{BASE}/a%2Fb",
        f"{BASE}/%61/b",
        f"{BASE}/a b",
        f"{BASE}/a\\b",
        f"{BASE}/ä",
        f"{BASE}/%FF",
        f"{BASE}/{'a' * 1025}",
        "file:///etc/passwd",
        "a/b",
        "",
    ],
)
async def test_only_addresses_in_the_container_are_fetched(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    place.holding(b"{}")

    async def read(name: str, limit: int) -> bytes:
        raise AssertionError(f"{name} was fetched")

    monkeypatch.setattr(place.claims.blobs, "read", read)
    with pytest.raises(MalformedMessage, match=f"web/m-1 .* an address outside of {BASE}"):
        await place.claims.redeemed(LETTER.by_reference(address))


async def test_a_name_that_has_to_be_quoted_is_fetched() -> None:
    place = Place()
    place.holding(b'{"a": 1}', "a b/ж%2F")
    redeemed = await place.claims.redeemed(LETTER.by_reference(f"{BASE}/a%20b/%D0%B6%252F"))
    assert redeemed.data == Json.of({"a": 1})


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"NaN", b'"\\ud800"', b"[" * 100_000])
async def test_data_that_is_not_json_makes_the_message_malformed_and_is_not_quoted(content: bytes) -> None:
    place = Place()
    with pytest.raises(MalformedMessage, match=r"web/m-1: its data, the blob 'a/b', is not JSON") as caught:
        await place.claims.redeemed(place.holding(content))
    assert caught.value.__cause__ is None


async def test_a_missing_blob_makes_the_message_malformed_with_advice() -> None:
    with pytest.raises(MalformedMessage, match=r"the blob 'a/b', does not exist.*restore it"):
        await Place().claims.redeemed(LETTER.by_reference(f"{BASE}/a/b"))


@pytest.mark.parametrize(("excess", "read"), [(0, True), (1, False)])
async def test_data_is_read_up_to_a_limit(excess: int, read: bool) -> None:
    place = Place()
    envelope = place.holding(b"7" + b" " * (MAX_BLOB_BYTES - 1 + excess))
    if read:
        assert (await place.claims.redeemed(envelope)).data == Json.of(7)
    else:
        with pytest.raises(MalformedMessage, match=f"too large; at most {MAX_BLOB_BYTES}"):
            await place.claims.redeemed(envelope)


async def test_without_a_container_data_in_a_blob_cannot_be_read() -> None:
    with pytest.raises(MalformedMessage, match="EXACTLYONCE__blobContainer"):
        await ClaimChecks(None).redeemed(LETTER.by_reference(f"{BASE}/a/b"))


def test_a_message_with_data_and_dataref_needs_no_blob() -> None:
    claims = ClaimChecks(None)
    both = Envelope("web", "m-1", "letter", LETTER.data, extensions=(("dataref", "https://elsewhere.example/a"),))
    assert not claims.claims(LETTER)
    assert not claims.claims(both)
    assert not claims.claims(LETTER.with_data(Json("null")))
    assert claims.claims(LETTER.by_reference(f"{BASE}/a"))


@pytest.mark.parametrize("strategy", [Outbox(), Colocated(), VersionStream()])
async def test_a_message_is_parked_with_its_reference(strategy: Strategy) -> None:
    place, world = Place(), World((RECEIPTS, Destination("accounts")))
    kind, poison = accounts(strategy), dated(breaking("m-1"))
    left = await place.claims.left(poison)
    assert await settled(place, world, kind, left) == "parked"
    found = parked(world, kind.ref("a"), "web/m-1")
    assert found is not None
    assert found.envelope == left.to_json()
    assert await place.claims.redeemed(Envelope.read(found.envelope.text)) == poison


@pytest.mark.parametrize("strategy", [Outbox(), VersionStream()])
async def test_a_processed_message_is_finished(strategy: Strategy) -> None:
    place, world = Place(), World((RECEIPTS, Destination("accounts")))
    kind = accounts(strategy)
    await world.process().deliver(kind, deposit("m-1"))
    assert await settled(place, world, kind, await place.claims.left(deposit("m-1"))) == "processed"


async def settled(place: Place, world: World, kind: Entity[Any], message: Envelope) -> str:
    """What becomes of a message that a queue gave up on."""
    body = message.to_json().text.encode()
    failures = Failures()
    failures.note(kind.name, "web/m-1", HandlerFailed("seen by this process"), 5)
    given_up = func.QueueMessage(id="q-1", body=body)
    return await settler(world, failures, place.claims).settle(kind, given_up, "accounts")
