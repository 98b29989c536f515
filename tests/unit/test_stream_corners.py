"""What a version stream reckons before it writes."""

from __future__ import annotations

from exactlyonce import EntityTooLarge, VersionStream
from exactlyonce.attempt import Handled
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.playing_beside import Beside, attempt


def test_a_state_that_an_entry_has_to_escape_all_through_needs_room_for_its_message_too() -> None:
    state = Json.of({"id": "a", "owner": "a", "note": '"' * 310_000})
    played = Beside().play(attempt(VersionStream(3), deposit("m-1"), handle=lambda *_: Handled(state, ())))
    ((_, error),) = played.finished.failed
    assert isinstance(error, EntityTooLarge)
