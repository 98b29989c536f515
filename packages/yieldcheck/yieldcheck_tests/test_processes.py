"""Processes that share a store: a lock that is released, or not; replies that are lost; programs that raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from yieldcheck.processes import Answer, Processes
from yieldcheck.search import Report, check
from yieldcheck.situations import Program


def polite() -> Program:
    taken = yield "take"
    if taken:
        yield "give back"
    return taken


def greedy() -> Program:
    taken = yield "take"
    return taken


def patient() -> Program:
    taken = yield "take"
    while not taken:
        taken = yield "take"
    yield "give back"


def a_lock(request: str, taken: bool) -> Iterator[Answer[bool]]:
    if request == "take":
        yield Answer(not taken, True, "finds it taken" if taken else "takes it")
    else:
        yield Answer(None, False, "gives it back")


def a_lossy_lock(request: str, taken: bool) -> Iterator[Answer[bool]]:
    for answer in a_lock(request, taken):
        yield answer
        yield Answer(False, answer.store, f"{answer.said}, but hears nothing", fault=True)


def nothing_is_wrong(_store: object, _results: Mapping[str, Any]) -> None:
    return None


def test_every_interleaving_is_played() -> None:
    seen: set[tuple[bool, bool]] = set()

    def judge(_: bool, results: Mapping[str, Any]) -> None:
        if len(results) == 2:
            seen.add((results["A"], results["B"]))

    check(Processes({"A": polite, "B": polite}, False, a_lock, judge))
    assert seen == {(True, True), (True, False), (False, True)}


def test_who_waits_for_what_is_never_given_back_is_stuck() -> None:
    report = check(Processes({"A": greedy, "B": patient}, False, a_lock, nothing_is_wrong), liveness=True)
    assert report.stuck
    assert report.story == ("A takes it",)


def test_who_waits_for_what_is_given_back_is_not() -> None:
    report = check(Processes({"A": patient, "B": patient}, False, a_lock, nothing_is_wrong), liveness=True)
    assert report.stuck == 0


def test_liveness_does_not_rely_on_faults_but_faults_happen() -> None:
    report = check(Processes({"A": patient}, False, a_lossy_lock, nothing_is_wrong), liveness=True)
    assert report.stuck
    assert report.story == ("A takes it, but hears nothing",)


def test_an_error_is_a_result_that_is_judged() -> None:
    def failing() -> Program:
        yield "take"
        raise LookupError("gone")

    def judge(_: bool, results: Mapping[str, Any]) -> str | None:
        return next((f"raised {result}" for result in results.values() if isinstance(result, Exception)), None)

    report: Report[Any, Any] = check(Processes({"A": failing}, False, a_lock, judge))
    assert report.violation == "raised gone"
