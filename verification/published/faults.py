"""What can go wrong with the algorithm as published, each fault alone: all repairs but the one that ends it are on.

`python -m verification.published.faults` writes the stories into `docs/protocols/published-algorithm.md`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from verification.checker.search import explore
from verification.published.algorithm import AS_PUBLISHED, REPAIRED, Deletion, PublishedAlgorithm, Repairs
from verification.world.scenario import Budget, Scenario

PAGE: Final = Path(__file__).parents[2] / "docs/protocols/published-algorithm.md"
WIDTH: Final = 126
_RECORDS: Final = (
    (re.compile(r"writes page .*? with 1 marks"), "writes the record"),
    (re.compile(r"finds page \d+"), "finds the record"),
    (re.compile("finds no page"), "finds no record"),
)
"""The algorithm's words for what is a page in ours."""
_STORIES: Final = re.compile("(<!-- stories -->\n```text\n).*?(```\n)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        name: of the story.
        repairs: what is on, so that no other fault comes first.
        ends: what ends it, on top of `repairs`.
        scenario: the smallest in which it shows.
        falls: the property.
        steps: of the shortest story.
    """

    name: str
    repairs: Repairs
    ends: Repairs
    scenario: Scenario
    falls: str
    steps: int

    def scenario_with(self, repairs: Repairs) -> Scenario:
        """The scenario with the algorithm, repaired like this."""
        return playing(self.scenario, repairs)

    def story(self) -> str:
        """The story: a paragraph for as long as the same worker is at the same attempt."""
        report = explore(self.scenario_with(self.repairs))
        paragraphs: list[tuple[str, list[str]]] = []
        for step in report.story:
            who, _, what = step.partition(" ")
            for pattern, words in _RECORDS:
                what = pattern.sub(words, what)
            if what.startswith("delayed write"):  # Nobody's step.
                who, what = "—", step
            if not paragraphs or paragraphs[-1][0] != who or what.startswith(("takes", "loads")):
                paragraphs.append((who, []))
            paragraphs[-1][1].append(what)
        lines = [
            fill(f"{who}: {'; '.join(steps)}", WIDTH, initial_indent="    ", subsequent_indent=" " * 8)
            for who, steps in paragraphs
        ]
        return "\n".join((f"{self.name} => {report.violation}", *lines, ""))


def playing(scenario: Scenario, repairs: Repairs) -> Scenario:
    """A scenario in which the published algorithm is at work."""
    strategy: Any = PublishedAlgorithm(repairs)
    return replace(scenario, strategy=strategy)


def _alone(name: str, copies: tuple[int, ...], **more: Any) -> Scenario:
    """One process that remembers the tokens of its session, as a client does: so that no read is stale by itself."""
    return Scenario(name, copies, workers=1, tokens=True, **more)


def _deleting(deletion: Deletion) -> Repairs:
    return Repairs(conditional_create=True, deletion=deletion, fresh_etag=True)


NOT_ON_THE_PAGE: Final = ("a retry does not see the record",)
"""Much like the one before."""
_TWO: Final = Scenario("two messages, no duplicates, no faults", (1, 1), tokens=True)
TWICE: Final = "at_most_one_state_change"
FAULTS: Final = (
    Fault("two workers create the entity", AS_PUBLISHED, REPAIRED, _TWO, "serial_execution", 8),
    Fault(
        "the reply of the commit is lost",
        _deleting(Deletion.ON_FAILURE),
        _deleting(Deletion.ON_CONFLICT),
        _alone("a lost reply", (1,), budget=Budget(unknown=1)),
        TWICE,
        11,
    ),
    Fault(
        "the client library sends the commit twice",
        _deleting(Deletion.ON_CONFLICT),
        _deleting(Deletion.AFTER_LOOKING),
        _alone("own success seen as a conflict", (1,), budget=Budget(repeated=1)),
        TWICE,
        11,
    ),
    Fault(
        "the commit arrives late",
        _deleting(Deletion.AFTER_LOOKING),
        _deleting(Deletion.NEVER),
        _alone("a late write", (1,), budget=Budget(unknown=1)),
        TWICE,
        13,
    ),
    Fault(
        "staged outputs are not seen yet",
        replace(REPAIRED, staged_token=False, record_again=False),
        REPAIRED,
        _alone("a crash", (1,), budget=Budget(crashes=1)),
        TWICE,
        11,
    ),
    Fault(
        "a duplicate does not see the record",
        replace(REPAIRED, record_token=False),
        REPAIRED,
        Scenario("two copies, no faults", (2,), tokens=True),
        TWICE,
        13,
    ),
    Fault(
        "a retry does not see the record",
        replace(REPAIRED, record_token=False, record_again=False),
        REPAIRED,
        _TWO,
        TWICE,
        16,
    ),
    Fault("the token is older than the record", replace(REPAIRED, record_again=False), REPAIRED, _TWO, TWICE, 16),
)


def with_stories(page: str) -> str:
    """The page with the stories as they are now."""
    stories = "".join(fault.story() for fault in FAULTS if fault.name not in NOT_ON_THE_PAGE)
    return _STORIES.sub(lambda match: f"{match[1]}{stories}{match[2]}", page)


def main() -> int:
    """Write the stories into the page."""
    PAGE.write_text(with_stories(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
