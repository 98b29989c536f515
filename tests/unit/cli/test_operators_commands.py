"""Operators' commands, on a store in memory: their output, refusals and exit codes."""

from __future__ import annotations

import re

import pytest

from exactlyonce import TryAgainLater
from exactlyonce.cli.__main__ import main
from exactlyonce.cli.tables import plain, pretty, table
from exactlyonce.values.frozen_json import Json
from tests.samples import deposit
from tests.unit.boards import scored
from tests.unit.operated import OUTBOX, PLACE, READ_MODEL, SECRET, STREAM, InMemory, Run, app, run

__all__ = ["app", "run"]


def test_parked_messages_are_listed_the_oldest_first_without_their_bodies(app: InMemory, run: Run) -> None:
    assert run("parked").out == "nothing is parked\n"
    app.park(deposit("m-2", note=SECRET))
    app.park(deposit("m-1", note=SECRET), "its \x1b[2Jhandler raised")
    ran = run("parked")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "AT                    ENTITY               MESSAGE  PLACE  REASON",
        f"2026-01-01T00:00:00Z  {PLACE}  web/m-2  -      its handler raised ValueError",
        f"2026-01-01T00:00:00Z  {PLACE}  web/m-1  -      its \\x1b[2Jhandler raised",
    ]
    assert SECRET in run("parked", "--bodies").out
    assert app.closed == 3


def test_discarding_has_to_be_confirmed(app: InMemory, run: Run) -> None:
    app.park(deposit("m-1"))
    assert run("discard", PLACE, "web/m-1").code == 2
    assert "web/m-1" in run("parked").out
    assert run("discard", PLACE, "web/m-1", "--yes").code == 0
    assert run("discard", PLACE, "web/m-1", "--yes").code == 1
    assert run("parked").out == "nothing is parked\n"


def test_an_entity_is_shown_with_its_owed_outputs_and_bodies_only_on_request(app: InMemory, run: Run) -> None:
    app.open = False
    with pytest.raises(TryAgainLater):
        app.deliver(OUTBOX, deposit("m-1", padding=SECRET, amount=77))
    app.park(deposit("m-2"))
    ran = run("inspect", "account", "a")
    assert ran.code == 0
    assert "ledger   version 1, by outbox" in ran.out
    assert "owing    since 2026-01-01T00:00:00" in ran.out
    assert re.search(r"[0-9a-f]{20} +1 +2026-01-01T00:00:00\+00:00 +\S{16} +receipts", ran.out), "its entry"
    assert re.search(r"2026-01-01T00:00:00\+00:00 +foreign, untimed +\S{16} +receipts", ran.out), "its mark"
    assert "parked  -        web/m-2" in ran.out
    assert SECRET not in ran.out
    assert "77" not in ran.out
    assert '"total": 77' in run("inspect", "account", '["a", "a"]', "--bodies").out


def test_an_entity_is_shown_with_its_pages(app: InMemory, run: Run) -> None:
    app.deliver(OUTBOX, *(deposit(f"m-{number}") for number in range(34)))
    ran = run("inspect", "account", "a").out
    assert "left     20 marks, for pages or for good; the newest of 2026-01-01T00:00:00+00:00" in ran
    assert "owing    since" in ran, "the ledger does not show what a book proves"
    assert re.search(r"page:1 +32", ran)


def test_streams_and_read_models_are_shown(app: InMemory, run: Run) -> None:
    app.deliver(STREAM, deposit("m-1"))
    app.deliver(READ_MODEL, scored(2))
    assert "entry  1        web/m-1" in run("inspect", "stream", "a").out
    ran = run("inspect", "board", "b").out
    assert "s       1     2-2" in ran
    assert "numbered  -        s/m-2" in ran


def test_an_absent_entity_is_shown_as_absent(app: InMemory, run: Run) -> None:
    ran = run("inspect", "account", "nobody", "--bodies")
    assert (ran.code, "there is no document" in ran.out, "absent or deleted" in ran.out) == (0, True, True)


def test_a_sweep_reports_its_result(app: InMemory, run: Run) -> None:
    app.open = False
    with pytest.raises(TryAgainLater):
        app.deliver(OUTBOX, deposit("m-1"))
    assert run("sweep").out == "0 swept, 0 failed, 0 left\n", "its process may be at work"
    app.clock.advance(3_600)
    failed = run("sweep", "--older-than", "0")
    assert (failed.code, failed.out.splitlines()[0]) == (1, "0 swept, 1 failed, 0 left")
    assert f"{PLACE}: TryAgainLater" in failed.out
    app.open = True
    assert run("sweep", "--type", "board", "--older-than", "0").out == "0 swept, 0 failed, 0 left\n"
    swept = run("sweep", "--type", "account", "--older-than", "0", "--limit", "1")
    assert (swept.code, swept.out) == (0, "1 swept, 0 failed, 0 left\n")


def test_the_books_of_processes_that_have_not_ended_are_listed(app: InMemory, run: Run) -> None:
    assert run("books").out == "all books have ended\n"
    app.open = False
    with pytest.raises(TryAgainLater):
        app.deliver(OUTBOX, deposit("m-1"))
    heads, book = run("books").out.splitlines()
    assert heads.split() == ["WRITTEN", "BOOK", "USED", "OPEN", "STUCK"]
    assert re.fullmatch(r"2026-01-01T00:00:00\+00:00  [0-9a-f]{20}  0     0     -", book), "as it was begun"


def test_gaps_are_tended_and_streams_replayed(app: InMemory, run: Run) -> None:
    app.deliver(READ_MODEL, scored(2))
    assert run("tend", "board", "b").code == 0
    assert "held" not in run("inspect", "board", "b").out
    app.deliver(STREAM, deposit("m-1"))
    ran = run("replay", "stream", "a", "1", "1")
    assert (ran.code, ran.out) == (0, "1 messages sent again\n")
    assert len(app.world.published) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "acount", "a"), "no entity type 'acount'; there are: account, stream, board"),
        (("inspect", "account", '["x", "y", "a"]'), "the key given has 2 value(s)"),
        (("tend", "account", "a"), "not a resequenced read model"),
        (("replay", "account", "a", "1", "1"), "keeps no version stream"),
        (("reset-token", "stream", "a", "--yes"), "the only protocol that keeps a session token"),
    ],
)
def test_commands_that_do_not_fit_the_entity_are_refused(
    app: InMemory, run: Run, arguments: tuple[str, ...], words: str
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_resetting_a_token_explains_its_risk_first(app: InMemory, run: Run) -> None:
    ran = run("reset-token", "account", "a")
    assert ran.code == 2
    assert "a copy of a message marked there is processed again" in ran.out.replace("\n", " ")
    assert run("reset-token", "account", "a", "--yes").out == "there is no session token to replace\n"


def test_a_token_ahead_of_the_account_is_reset_and_lost_messages_are_listed(app: InMemory, run: Run) -> None:
    app.deliver(OUTBOX, *(deposit(f"m-{number}") for number in range(34)))
    assert "at the token" in run("reset-token", "account", "a", "--yes").out
    app.keep("kept-1", OUTBOX.ref("a"))
    app.world.store.library.clear()  # As a failover may: the kept message is gone, and the token leads nowhere.
    ran = run("reset-token", "account", "a", "--yes")
    assert (ran.code, ran.out.splitlines()) == (0, ["reset", "the kept message kept-1 was lost, and will not be sent"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_app", "There is no module 'no_such_app'"),
        ("app_of_a_test:twice", "app_of_a_test has once at its top level"),
        ("json", "json has no application at its top level"),
    ],
)
def test_a_missing_application_is_reported(
    app: InMemory, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    assert main(["--app", name, "parked"]) == 2
    assert words in capsys.readouterr().err
    assert main(["--app", "app_of_a_test:once", "parked"]) == 0


def test_tables_fit_their_cells_and_escape_control_characters() -> None:
    assert list(table(("A", "B"), [("x", None), ("yyy", 7)])) == ["A    B", "x    -", "yyy  7"]
    assert list(table(("A",), [])) == []
    assert plain("a\nb\x1b\u202e ÄÖ") == "a\\nb\\x1b\\u202e ÄÖ"


def test_a_body_is_shown_with_the_digits_of_its_numbers() -> None:
    assert "99999999999999.99" in pretty(Json('{"amount":99999999999999.99}'))
