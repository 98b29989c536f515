"""Commands on many parked messages: what they print, that they are dry runs without `--yes`, and their exit codes."""

from __future__ import annotations

import json

import pytest

from tests.samples import deposit
from tests.unit.operated import PLACE, SECRET, InMemory, Run, app

__all__ = ["app"]
FAST = ("--rate", "1000000")


@pytest.fixture
def parked(app: InMemory) -> InMemory:
    for number in range(3):
        app.park(deposit(f"m-{number}", note=SECRET))
    app.park(deposit("m-9"), "OutputTooLarge")
    return app


def test_parked_messages_are_counted_by_type_and_reason(parked: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    assert Run(capsys, "parked", "--groups").out.splitlines() == [
        "COUNT  TYPE     FIRST                 LAST                  REASON",
        "3      account  2026-01-01T00:00:00Z  2026-01-01T00:00:00Z  its handler raised ValueError",
        "1      account  2026-01-01T00:00:00Z  2026-01-01T00:00:00Z  OutputTooLarge",
    ]
    (group,) = json.loads(Run(capsys, "parked", "--groups", "--json", "--reason", "Large").out)
    assert (group["count"], group["reason"]) == (1, "OutputTooLarge")


def test_selected_messages_are_listed_for_people_and_for_scripts(
    parked: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "web/m-9" not in Run(capsys, "parked", "--reason", "ValueError").out
    assert Run(capsys, "parked", "--type", "board").out == "nothing is parked\n"
    listed = Run(capsys, "parked", "--json", "--limit", "1").out
    assert [(load["entity"], load["message"], load["place"]) for load in json.loads(listed)] == [
        (PLACE, "web/m-0", None)
    ]
    assert SECRET not in listed
    (shown,) = json.loads(Run(capsys, "parked", "--json", "--limit", "1", "--bodies", "--evidence").out)
    assert (shown["envelope"]["id"], shown["processed"]) == ("m-0", {PLACE: False})


def test_the_evidence_about_selected_messages_is_shown(parked: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "parked", "--evidence", "--limit", "2").out
    assert run.count("without proof that it processed the message") == 2


@pytest.mark.parametrize("command", [("requeue-all", "--to", "receipts"), ("discard-all",)])
def test_without_a_confirmation_nothing_is_changed(
    command: tuple[str, ...], parked: InMemory, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(capsys, *command, "--reason", "ValueError")
    assert (run.code, "3 messages." in run.out, "Say --yes" in run.out) == (2, True, True)
    assert json.loads(Run(capsys, *command, "--json").out)["selected"] == 4
    assert len(json.loads(Run(capsys, "parked", "--json").out)) == 4
    assert not parked.world.published
    none = Run(capsys, *command, "--type", "board")
    assert (none.code, none.out) == (0, "no parked message matches\n")


def test_selected_messages_are_sent_again(parked: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "requeue-all", "--to", "receipts", "--reason", "ValueError", "--yes", *FAST)
    assert (run.code, run.out, run.err) == (0, "3 sent\n", "")
    assert "web/m-9" in Run(capsys, "parked").out
    assert len(parked.world.published) == 3


def test_messages_that_stay_parked_are_named(parked: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "requeue-all", "--limit", "1", "--yes", *FAST)
    assert (run.code, run.out.splitlines()[0]) == (1, "1 ConfigurationError")
    assert f"{PLACE} web/m-0: Message web/m-0 came from a queue. Name its destination" in run.out
    found = json.loads(Run(capsys, "requeue-all", "--yes", "--json", *FAST).out)
    assert (found["outcomes"], len(found["not_done"]), found["not_tried"]) == ({"ConfigurationError": 4}, 4, 0)


def test_selected_messages_are_discarded(parked: InMemory, capsys: pytest.CaptureFixture[str]) -> None:
    assert Run(capsys, "discard-all", "--yes", *FAST).out == "4 discarded\n"
    assert Run(capsys, "parked").out == "nothing is parked\n"


@pytest.mark.parametrize("arguments", [("--limit", "0"), ("--limit", "x"), ("--rate", "0"), ("--rate", "inf")])
def test_a_limit_or_a_rate_that_means_nothing_is_refused(
    app: InMemory, arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        Run(capsys, "discard-all", *arguments)
    assert ended.value.code == 2
