"""Requeuing of parked messages by operators: what is shown, what is refused, and under which identity a message is sent."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Entity, Envelope, VersionStream
from exactlyonce.hosting.deliveries.poison import UNREADABLE
from exactlyonce.values.envelope import key_of, message_hash, milliseconds
from tests.samples import accounts, deposit
from tests.unit.boards import BOARDS, scored
from tests.unit.operated import ASIDE, OLD, OUTBOX, PLACE, READ_MODEL, SECRET, STREAM, InMemory, Run, app, run
from tests.unit.script import AT

__all__ = ["app", "run"]


def dated(id: str, age: timedelta | None = timedelta(0), **more: Any) -> Envelope:
    """A message that came about so long before it was parked; None if it does not say."""
    return replace(deposit(id, **more), time=None if age is None else AT - age)


def test_a_parked_message_is_requeued_by_the_keys_in_the_list(app: InMemory, run: Run) -> None:
    app.park(dated("m-1"))
    ran = run("requeue", '["account", "a", "a"]', "web/m-1", "--to", "receipts")
    assert (ran.code, ran.out) == (0, "sent as web/m-1\n")
    assert [output.envelope for output in app.world.published] == [dated("m-1").once_more().to_json()]
    again = run("requeue", PLACE, "web/m-1", "--to", "receipts")
    assert again.code == 1
    assert "no such parked message" in again.out
    assert run("requeue", PLACE, "web/m-1", "--to", "receipts", "--as-new", "--yes").out == again.out


@pytest.mark.parametrize("place", [PLACE, ASIDE])
@pytest.mark.parametrize(
    ("age", "words"),
    [(OLD, "the message is too old"), (None, "the message has no time"), (-timedelta(days=2), "more than a day ahead")],
)
def test_a_message_that_its_receiver_would_refuse_stays_parked(
    app: InMemory, run: Run, place: str, age: timedelta | None, words: str
) -> None:
    app.park(dated("m-1", age), place=place)
    app.clock.advance(1)
    ran = run("requeue", place, "web/m-1", "--to", "receipts")
    assert (ran.code, words in ran.out, "--as-new" in ran.out) == (1, True, True)
    assert "web/m-1" in run("parked").out
    assert not app.world.published


def test_a_read_model_is_sent_a_message_of_any_age(app: InMemory, run: Run) -> None:
    board = BOARDS.ref("b").key
    app.park(replace(scored(1), time=AT - 100 * OLD), place=board)
    as_new = run("requeue", board, "s/m-1", "--to", "receipts", "--as-new", "--yes")
    assert (as_new.code, "without --as-new" in as_new.out) == (1, True)
    assert run("requeue", board, "s/m-1", "--to", "receipts").out == "sent as s/m-1\n"


def test_a_message_is_sent_under_a_new_identity_after_its_evidence_was_shown(app: InMemory, run: Run) -> None:
    app.park(dated("m-1", 2 * OLD, padding=SECRET))
    shown = run("requeue", PLACE, "web/m-1", "--to", "receipts", "--as-new")
    assert shown.code == 2
    assert not app.world.published
    assert shown.out.splitlines()[:5] == [
        "message  web/m-1, of type account.deposit",
        f"hash     {message_hash('web/m-1')}",
        "sent     2025-12-02T00:10:00+00:00, as its sender says",
        "parked   2026-01-01T00:00:00+00:00: its handler raised ValueError",
        "entity   account/a, without proof that it processed the message; or the proof was deleted by now",
    ]
    assert "--yes" in shown.out
    assert SECRET not in shown.out
    sent = run("requeue", PLACE, "web/m-1", "--to", "receipts", "--as-new", "--yes")
    (output,) = app.world.published
    new = Envelope.read(output.envelope.text)
    assert (sent.code, sent.out.splitlines()[-1]) == (0, f"sent as web/{new.id}")
    assert (new.time, new.data) == (AT, dated("m-1", padding=SECRET).data)
    assert (new.since, new.id == "m-1") == (milliseconds(AT), False), "all its copies have this time"
    assert run("parked").out == "nothing is parked\n"


@pytest.mark.parametrize(("more", "place"), [(0, "the ledger"), (40, "page:1")])
def test_the_evidence_of_an_outbox_is_the_place_of_a_mark(app: InMemory, run: Run, more: int, place: str) -> None:
    # Timed, so that the first one leaves the ledger first.
    later = (dated(f"n-{number}", -timedelta(seconds=1)).with_stable_time() for number in range(more))
    app.deliver(OUTBOX, dated("m-1"), *later)
    app.park(dated("m-1"))
    ran = run("requeue", PLACE, "web/m-1", "--to", "receipts", "--as-new").out
    assert f"entity   account/a, which has processed it: its mark is in {place}, since 2026-01-01T00:00:00+00:00" in ran
    (item,) = json.loads(run("parked", "--evidence", "--json").out)
    (known,) = item["processed"].values()
    assert (item["hash"], known["place"]) == (message_hash("web/m-1"), "page" if more else "ledger")


def test_a_message_that_carries_a_stable_time_is_judged_and_shown_with_it(app: InMemory, run: Run) -> None:
    app.park(replace(dated("m-1").with_stable_time(milliseconds(AT - 2 * OLD)), time=AT))
    ran = run("requeue", PLACE, "web/m-1", "--to", "receipts")
    assert (ran.code, "the message is too old" in ran.out) == (1, True)
    ran = run("requeue", PLACE, "web/m-1", "--to", "receipts", "--as-new")
    assert "since    2025-12-02T00:10:00+00:00, in all of its copies" in ran.out


@pytest.mark.parametrize(("entity", "message"), [(STREAM, dated("m-1")), (READ_MODEL, scored(2))])
def test_the_evidence_names_an_entity_that_processed_the_message(
    app: InMemory, run: Run, entity: Entity[Any], message: Envelope
) -> None:
    app.deliver(entity, message)
    ref = entity.ref_of(message)
    app.park(message, place=ref.key)
    ran = run("requeue", ref.key, key_of(message), "--to", "receipts", "--as-new")
    assert f"entity   {ref}, which has processed it: discard it" in ran.out


def test_the_evidence_of_a_message_put_aside_is_its_handlers_entity(app: InMemory, run: Run) -> None:
    app.deliver(OUTBOX, dated("m-1"))
    app.park(dated("m-1", None), place=ASIDE)
    ran = run("requeue", ASIDE, "web/m-1", "--to", "receipts", "--as-new").out
    assert "at an unknown time" in ran
    assert "entity   account/a, which has processed it" in ran
    app.park(replace(dated("m-2"), type="account.unknown"), place=ASIDE)
    assert "entity   no entity of this" in run("requeue", ASIDE, "web/m-2", "--to", "receipts", "--as-new").out


def test_the_evidence_names_an_entity_that_cannot_be_read(app: InMemory, run: Run) -> None:
    app.deliver(accounts(VersionStream()), dated("m-1"))
    app.park(dated("m-2", None))
    ran = run("requeue", PLACE, "web/m-2", "--to", "receipts", "--as-new").out
    assert "entity   account/a, whose documents cannot be read: ConfigurationError" in ran


def test_an_overdue_output_is_requeued_to_its_own_destination(app: InMemory, run: Run) -> None:
    place = '["exactlyonce.too-old","account","b","b"]'
    app.park(dated("m-1", 2 * OLD), "committed long ago", place, "receipts")
    assert "too old" in run("requeue", place, "web/m-1").out
    shown = run("requeue", place, "web/m-1", "--as-new").out
    assert "to       receipts, which it may have reached before" in shown
    assert "entity   account/a, without proof that it processed the message" in shown
    assert run("requeue", place, "web/m-1", "--as-new", "--yes").code == 0
    assert [output.destination for output in app.world.published] == ["receipts"]


def test_a_message_from_a_queue_is_requeued_to_the_named_destination(app: InMemory, run: Run) -> None:
    app.park(dated("m-1"))
    ran = run("requeue", PLACE, "web/m-1")
    assert (ran.code, "--to DESTINATION" in ran.err) == (2, True)
    assert run("requeue", PLACE, "web/m-2").code == 1


@pytest.mark.parametrize(
    ("entity", "message", "to", "code", "words"),
    [
        (PLACE, "web/m-1", "recipts", 2, "no destination 'recipts'; known are: receipts"),
        ("account/a", "web/m-1", "receipts", 2, "is not an ENTITY as 'parked' lists them"),
        ("[7]", "web/m-1", "receipts", 2, "is not an ENTITY"),
        ("[7, 8]", "web/m-1", "receipts", 2, "is not an ENTITY"),
        ("[", "web/m-1", "receipts", 2, "is not an ENTITY"),
        (PLACE, f"{UNREADABLE}/q-1", "receipts", 1, "a body that could not be read"),
    ],
)
def test_a_requeue_that_is_not_possible_is_refused_with_advice(  # noqa: PLR0917
    app: InMemory, run: Run, entity: str, message: str, to: str, code: int, words: str
) -> None:
    ran = run("requeue", entity, message, "--to", to)
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
