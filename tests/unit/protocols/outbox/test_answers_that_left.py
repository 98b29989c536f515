"""The answer to a request is looked for wherever it may have left for, before or after the mark of the request."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from exactlyonce import Envelope
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.library import FindPages
from exactlyonce.protocols.outbox.judge import arrived, look_apart
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.ledger import Ledger, Mark
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.values.envelope import EntityRef, key_of, message_hash, milliseconds
from exactlyonce.values.frozen_json import Json

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ENTITY = EntityRef("counter", ("c",), "c")
REQUEST = Envelope("http", "k-1", "add", Json("{}"), AT, asked="f").with_stable_time()
HASH = message_hash(key_of(REQUEST))
SINCE = milliseconds(AT)
MARK = Mark(SINCE, HASH, "f", timed=True, content="abcd").text
OWING = OutboxEntry(HASH, f"{'a' * 20}.0000001", AT)


@pytest.mark.parametrize(
    "ledger",
    [
        Ledger(version=33, marks=MARK, left=32, cut=1, complete=SINCE - 1),
        Ledger(version=33, left=33, cut=1, complete=SINCE, outbox=(OWING,)),
        Ledger(version=33, left=33, cut=1, complete=SINCE),
    ],
    ids=["its mark is here", "its mark has left, and it owes", "its mark has left"],
)
def test_the_answer_is_looked_for_by_the_hash_of_its_request(ledger: Ledger) -> None:
    view = View(None, '"1"', 0, None, ledger, Memory())
    effect = next(look_apart(ENTITY, arrived(ENTITY, (REQUEST,), ()), view))
    assert isinstance(effect, FindPages)
    assert effect.hashes == (HASH,)
