"""Commands on many parked messages: what they print, that they are dry runs without `--yes`, and their exit codes."""

from __future__ import annotations

import json

import pytest

from tests.samples import deposit
from tests.unit.operated import PLACE, SECRET, InMemory, Run, app, run

__all__ = ["app", "run"]
FAST = ("--rate", "1000000")


@pytest.fixture
def parked(app: InMemory) -> InMemory:
    for number in range(3):
        app.park(deposit(f"m-{number}", note=SECRET))
    app.park(deposit("m-9"), "OutputTooLarge")
    return app


def test_parked_messages_are_counted_by_type_and_reason(parked: InMemory, run: Run) -> None:
    assert run("parked", "--groups").out.splitlines() == [
        "COUNT  TYPE     FIRST                 LAST                  REASON",
        "3      account  2026-01-01T00:00:00Z  2026-01-01T00:00:00Z  its handler raised ValueError",
        "1      account  2026-01-01T00:00:00Z  2026-01-01T00:00:00Z  OutputTooLarge",
    ]
    (group,) = json.loads(run("parked", "--groups", "--json", "--reason", "Large").out)
    assert (group["count"], group["reason"]) == (1, "OutputTooLarge")


def test_selected_messages_are_listed_for_people_and_for_scripts(parked: InMemory, run: Run) -> None:
    assert "web/m-9" not in run("parked", "--reason", "ValueError").out
    assert run("parked", "--type", "board").out == "nothing is parked\n"
    listed = run("parked", "--json", "--limit", "1").out
    assert [(load["entity"], load["message"], load["place"]) for load in json.loads(listed)] == [
        (PLACE, "web/m-0", None)
    ]
    assert SECRET not in listed
    (shown,) = json.loads(run("parked", "--json", "--limit", "1", "--bodies", "--evidence").out)
    assert (shown["envelope"]["id"], shown["processed"]) == ("m-0", {PLACE: False})


def test_the_evidence_about_selected_messages_is_shown(parked: InMemory, run: Run) -> None:
    ran = run("parked", "--evidence", "--limit", "2").out
    assert ran.count("without proof that it processed the message") == 2


@pytest.mark.parametrize("command", [("requeue-all", "--to", "receipts"), ("discard-all",)])
def test_without_a_confirmation_nothing_is_changed(command: tuple[str, ...], parked: InMemory, run: Run) -> None:
    ran = run(*command, "--reason", "ValueError")
    assert (ran.code, "3 messages." in ran.out, "Say --yes" in ran.out) == (2, True, True)
    assert json.loads(run(*command, "--json").out)["selected"] == 4
    assert len(json.loads(run("parked", "--json").out)) == 4
    assert not parked.world.published
    none = run(*command, "--type", "board")
    assert (none.code, none.out) == (0, "no parked message matches\n")


def test_selected_messages_are_sent_again(parked: InMemory, run: Run) -> None:
    ran = run("requeue-all", "--to", "receipts", "--reason", "ValueError", "--yes", *FAST)
    assert (ran.code, ran.out, ran.err) == (0, "3 sent\n", "")
    assert "web/m-9" in run("parked").out
    assert len(parked.world.published) == 3


def test_messages_that_stay_parked_are_named(parked: InMemory, run: Run) -> None:
    ran = run("requeue-all", "--limit", "1", "--yes", *FAST)
    assert (ran.code, ran.out.splitlines()[0]) == (1, "1 ConfigurationError")
    assert f"{PLACE} web/m-0: Message web/m-0 came from a queue. Name its destination" in ran.out
    found = json.loads(run("requeue-all", "--yes", "--json", *FAST).out)
    assert (found["outcomes"], len(found["not_done"]), found["not_tried"]) == ({"ConfigurationError": 4}, 4, 0)


def test_selected_messages_are_discarded(parked: InMemory, run: Run) -> None:
    assert run("discard-all", "--yes", *FAST).out == "4 discarded\n"
    assert run("parked").out == "nothing is parked\n"


@pytest.mark.parametrize("arguments", [("--limit", "0"), ("--limit", "x"), ("--rate", "0"), ("--rate", "inf")])
def test_a_limit_or_a_rate_that_means_nothing_is_refused(app: InMemory, arguments: tuple[str, str], run: Run) -> None:
    with pytest.raises(SystemExit) as ended:
        run("discard-all", *arguments)
    assert ended.value.code == 2
