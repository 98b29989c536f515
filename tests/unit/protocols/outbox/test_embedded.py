"""The preset that keeps every entry in the document: dated by the server's clock, and trimmed by age."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from exactlyonce import Envelope, Outbox
from exactlyonce.effects.effect import Begin
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import FindProcessed
from exactlyonce.effects.publish import Publish
from tests.samples import deposit
from tests.unit.script import Played, Script, attempt

EMBEDDED = Outbox.embedded()


def processed(script: Script, message: Envelope, at: int = 1_000, strategy: Outbox = EMBEDDED) -> Played:
    """An attempt at this time, in seconds, where messages are remembered for a hundred."""
    script.at = datetime.fromtimestamp(at, timezone.utc)
    return script.play(attempt(strategy, message, retention=timedelta(seconds=100)))


def test_no_records_are_asked_for_while_none_can_exist() -> None:
    assert processed(Script(), deposit("m-1")).kinds == [LoadEntity, Begin, SaveEntity, Publish]


def test_entries_are_dated_by_the_servers_clock_and_never_before_their_commit() -> None:
    script = Script()
    dates: list[list[int | None]] = []
    for number, at in enumerate((1_000, 1_050, 1_060)):
        processed(script, deposit(f"m-{number}", answers=0), at)
        dates.append([entry.seen for entry in script.entries])
    assert dates == [[None], [1_000, None], [1_000, 1_050, None]]


def test_what_is_older_than_the_retention_and_owes_nothing_is_dropped() -> None:
    for at, left in ((1_100, ["web/m-1", "web/m-2"]), (1_101, ["web/m-2"]), (9_000, ["web/m-2"])):
        script = Script()
        processed(script, deposit("m-1", answers=0))
        processed(script, deposit("m-2", answers=1))
        processed(script, deposit("m-3", answers=0), at)
        # An entry is dated by the commit after it, and what is too old leaves with the next.
        processed(script, deposit("m-4", answers=0), at)
        assert [entry.message for entry in script.entries] == [*left, "web/m-3", "web/m-4"]
        assert script.ledger.version == 4


def test_what_owes_staged_outputs_is_kept_however_old_it_is() -> None:
    """As after an exchange of presets: nothing else names the document that holds them."""
    script = Script()
    processed(script, deposit("m-1", answers=1), strategy=Outbox(window=None, inline_limit=0))
    processed(script, deposit("m-2", answers=0))
    for number in (3, 4):
        processed(script, deposit(f"m-{number}", answers=0), 9_000)
    owed = [(entry.message, entry.owed) for entry in script.entries]
    assert owed == [("web/m-1", "staged"), ("web/m-3", None), ("web/m-4", None)]


def test_after_another_preset_its_records_are_still_found() -> None:
    script = Script()
    for number in (1, 2):
        processed(script, deposit(f"m-{number}", answers=0), strategy=Outbox(window=1))
    played = processed(script, deposit("m-1", answers=0))
    assert played.kinds == [LoadEntity, FindProcessed]
    assert played.finished.processed == ()


def test_what_is_owed_stays_however_long_ago_it_was_dated() -> None:
    script = Script()
    for number in (1, 2):
        processed(script, deposit(f"m-{number}", answers=1))
    assert script.entries[0].seen == 1_000
    for number in (3, 4):
        processed(script, deposit(f"m-{number}", answers=0), 9_000)
    assert [entry.message for entry in script.entries] == ["web/m-1", "web/m-2", "web/m-3", "web/m-4"]
