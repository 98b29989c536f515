"""The clean-up forgets old channels of entity types that say so, behind fences; and only these."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce import Envelope, Outbox
from exactlyonce.records.channels import Forgotten
from exactlyonce.records.ledger import read_entity
from exactlyonce.records.places import Place
from exactlyonce.records.sequences import channel_id
from exactlyonce.values.frozen_json import Json
from tests.spark.cleaner import shop
from tests.spark.cleaner.conftest import Shops
from tests.spark.cleaner.shop import DAY, ref

AGE = timedelta(days=20)


@pytest.fixture
def forgetful(empty: Shops, monkeypatch: pytest.MonkeyPatch) -> Shops:
    """Shops of one type forget channels, and hold one."""
    strategy = Outbox(window=2, channels=1, forget_after=AGE)
    monkeypatch.setitem(shop.TYPES, "outbox", shop.shops("outbox", strategy, "shops"))
    return empty


def begun(shops: Shops, source: str) -> str:
    """A channel that a source begins now."""
    return channel_id(datetime.fromtimestamp(shops.cosmos.now(), timezone.utc), f"{source:x<16}", 0)


def paid(source: str, channel: str, number: int) -> tuple[str, Envelope]:
    """A payment through a channel."""
    data = Json.of({"shop": "s", "amount": number, "pictured": False})
    extensions = Place(channel, ref("outbox").source, number).extensions
    return "outbox", Envelope(source, f"{channel}-{number}", "cleanup.paid", data, extensions=extensions)


def apart(shops: Shops) -> set[tuple[str, str]]:
    """Channel and turn of every document of a channel."""
    documents: list[dict[str, Any]] = [one for one in shops.documents().values() if one.get("kind") == "channel"]
    return {(one["channel"]["id"], one["turn"]) for one in documents}


def forgotten(shops: Shops) -> Forgotten | None:
    (document,) = (one for _, one in shops.everything() if one["id"] == "outbox-s")
    ledger = read_entity(ref("outbox"), Json.of(document)).ledger
    assert ledger is not None
    return ledger.apart.forgotten


def test_old_channels_without_a_gap_are_forgotten(forgetful: Shops) -> None:
    gap, first, second = (begun(forgetful, source) for source in ("gap", "first", "second"))
    forgetful.process(
        [paid("gap", gap, 2), paid("first", first, 1), paid("first", first, 2), paid("second", second, 1)]
    )
    forgetful.cosmos.advance_clock(21 * DAY)
    young, held = begun(forgetful, "young"), begun(forgetful, "held")
    forgetful.process([paid("young", young, 1), paid("held", held, 1)])
    before, asked = apart(forgetful), forgetful.cosmos.last_request()
    assert before == {(one, "") for one in (gap, first, second, young)}

    dry = forgetful.clean()
    assert dry.channels == {"goes": 2}
    assert "channels: goes 2" in dry.lines()
    assert forgetful.writes_after(asked) == []

    done = forgetful.clean(delete=True)
    assert done.channels == {"forgotten": 2}
    after = forgotten(forgetful)
    assert after is not None
    assert apart(forgetful) == {(gap, after.turn), (young, "")}
    assert after.includes(first)
    assert not after.includes(young)


def test_where_no_type_forgets_nothing_is_said_of_channels(empty: Shops) -> None:
    summary = empty.clean()
    assert summary.channels is None
    assert not any(line.startswith("channels") for line in summary.lines())
