"""States that grow large in a version stream: now and then an entry holds them whole, in one batch with the document."""

from __future__ import annotations

import re
from typing import Any

import pytest

from exactlyonce.attempt import Before, Handled
from exactlyonce.errors import EntityTooLarge, ExactlyOnceError
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.script import Script, attempt

STREAM = VersionStream(snapshot_every=3)


def growing(id: str, size: int, character: str = "x") -> Any:
    """A message that makes the state so large."""
    body = Json.of({"id": "a", "owner": "a", "note": character * size})
    return attempt(STREAM, deposit(id), handle=lambda *_: Handled(body))


def noting(before: Before, _: Envelope) -> Handled:
    """Leaves the state as it is."""
    assert before.body is not None
    return Handled(before.body)


def test_it_is_refused_before_an_entry_cannot_hold_it() -> None:
    script = Script()
    failed: list[ExactlyOnceError] = []
    for size in range(700_000, 1_000_000, 50_000):
        failed += [error for _, error in script.play(growing(f"m-{size}", size)).finished.failed]
    assert {type(error) for error in failed} == {EntityTooLarge}
    assert re.search(r"Message web/m-900000 on entity account/a: .* twice in one batch.* Keep less", str(failed[0]))
    committed = script.ledger.version
    for number in range(6):
        assert script.play(attempt(STREAM, deposit(f"m-{number}"), handle=noting)).finished.failed == ()
    assert script.ledger.version == committed + 6


def test_it_may_be_as_large_as_stated_and_no_larger() -> None:
    def of(size: int) -> str:
        """The error for a state of so many bytes."""
        failed = Script().play(growing("m-1", size - frame)).finished.failed
        return "".join(str(error) for _, error in failed)

    nothing = Json.of({"body": {"id": "a", "owner": "a", "note": ""}})
    frame, quotes = nothing.size, nothing.text.count('"')
    largest = (BATCH_BYTES - 100_000 - len('""') - quotes) // 2  # Twice, once as a string, next to a message.
    assert of(largest) == ""
    assert f"the state would have {largest + 1} bytes" in of(largest + 1)
    assert f"{BATCH_BYTES + 2} bytes with a message" in of(largest + 1)


@pytest.mark.parametrize("character", ["x", '"', "ü"])
def test_whatever_it_is_made_of(character: str) -> None:
    script, size = Script(), 1_500_000
    while script.play(growing(f"m-{size}", size // len(character.encode()), character)).finished.failed:
        size -= 50_000
    for number in range(6):
        assert script.play(attempt(STREAM, deposit(f"m-{number}"), handle=noting)).finished.failed == ()


def test_it_may_become_smaller_from_whatever_it_was() -> None:
    def holding(*sizes: int) -> Json:
        return Json.of({"id": "a", "owner": "a", "notes": ["x" * size for size in sizes]})

    script = Script(holding(800_000, 300_000))
    for version, last in enumerate((200_000, 201_000, 100_000), 1):
        step = attempt(STREAM, deposit(f"m-{version}"), handle=lambda *_, to=last: Handled(holding(800_000, to)))
        failed = [type(error) for _, error in script.play(step).finished.failed]
        assert failed == ([EntityTooLarge] if last == 201_000 else [])


def test_a_state_that_an_entry_has_to_escape_all_through_needs_room_for_its_message_too() -> None:
    state = Json.of({"id": "a", "owner": "a", "note": '"' * 310_000})
    played = Script().play(attempt(VersionStream(3), deposit("m-1"), handle=lambda *_: Handled(state, ())))
    ((_, error),) = played.finished.failed
    assert isinstance(error, EntityTooLarge)
