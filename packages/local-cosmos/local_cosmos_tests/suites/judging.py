"""What the outcomes of somebody else's tests say: each failure has a cause, or it is named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

DOCS: Final = Path(__file__).parents[2] / "docs"

_KINDS: Final = {
    "wrong": "Wrong here",
    "missing": "Missing here, and refused by name",
    "simplified": "Simpler here",
    "unproved": "The documentation says otherwise, or nothing",
    "test": "Due to the test or its library",
    "time": "Too slow on this machine",
    "open": "Not judged yet",
}
"""Kinds of causes, and the titles of their parts of a page."""


class Outcome(NamedTuple):
    """Of a test.

    Attributes:
        test: Its name.
        outcome: `passed`, `failed` or `skipped`.
        why: What failed.
        requests: How many it sent.
    """

    test: str
    outcome: str
    why: str
    requests: int = 1


class Cause(NamedTuple):
    """Why tests fail here.

    Attributes:
        kind: One of `wrong`, `missing`, `simplified`, `unproved`, `test`, `time` and `open`.
        cause: A sentence.
        tests: Their names.
    """

    kind: str
    cause: str
    tests: tuple[str, ...]


def outcomes_in(lines: str) -> list[Outcome]:
    """Outcomes written as JSON, one object a line."""
    return [Outcome(**json.loads(line)) for line in lines.splitlines()]


def causes_in(file: Path) -> list[Cause]:
    """The causes of failures, in the order of a page.

    Raises:
        ValueError: A cause is of no known kind, or a test has two.
    """
    causes = [
        Cause(load["kind"], load["cause"], tuple(load["tests"]))
        for load in json.loads(file.read_text(encoding="utf-8"))
    ]
    if unknown := {cause.kind for cause in causes} - set(_KINDS):
        raise ValueError(f"{file.name} has causes of the kinds {unknown}; known are {list(_KINDS)}.")
    tests = [test for cause in causes for test in cause.tests]
    if twice := {test for test in tests if tests.count(test) > 1}:
        raise ValueError(f"{file.name} has several causes for {twice}.")
    return sorted(causes, key=lambda cause: list(_KINDS).index(cause.kind))


def judge(outcomes: Sequence[Outcome], file: Path, page: Path | None, head: Iterator[str]) -> int:
    """Write a page with a head and the causes of failures, which a file has; 1 if a failure has no cause."""
    causes = causes_in(file)
    if page is not None:
        page.write_text("\n".join([*head, *lines_of(outcomes, causes)]) + "\n", encoding="utf-8")
    known = {test for cause in causes for test in cause.tests}
    unknown = [outcome for outcome in outcomes if outcome.outcome == "failed" and outcome.test not in known]
    for outcome in unknown:
        print(f"{outcome.test} fails, and `{file.name}` has no cause:\n{outcome.why}\n")
    return 1 if unknown else 0


def lines_of(outcomes: Sequence[Outcome], causes: Sequence[Cause]) -> Iterator[str]:
    """The part of a page that says how many tests failed, by cause."""
    failed = {outcome.test for outcome in outcomes if outcome.outcome == "failed"}
    for kind, group in groupby(causes, key=lambda cause: cause.kind):
        numbers = [(cause.cause, len(failed.intersection(cause.tests))) for cause in group]
        yield from ("", f"## {_KINDS[kind]}: {sum(number for _, number in numbers)}", "")
        yield from (f"- {number}: {cause}" for cause, number in numbers if number)
