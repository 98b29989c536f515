"""The acts of Spark: audit what the game left, which has to be in order; damage a copy of it, and audit that; clean up another.

Each act takes what it works on and returns what it shows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from json import loads
from pathlib import Path
from typing import Any, Final

from demo import copies
from demo.damage import damaged
from demo.stack import DATABASE
from demo.strategies import STRATEGIES, reading
from exactlyonce.errors import ConfigurationError
from handlers.leader_board import boards
from handlers.shooting_range import ranges
from local_cosmos.administration import Administration

DAMAGED, OLD = f"{DATABASE}-damaged", f"{DATABASE}-old"
"""Copies of the game's database."""
DAY: Final = 86_400
"""How far the account's clock is moved on before an audit, so that nothing is in its grace."""
LONG: Final = timedelta(hours=12)
"""Age from which garbage and awaited replies are findings in the damaged copy, where some are planted."""
MONTH: Final = 32 * DAY
"""The same before clean-up: longer than its retention."""

Found = tuple[str, str]
"""A rule, and the key of an entity."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What an act works on.

    Attributes:
        cosmos: where the database is.
        strategy: of the games.
        folder: for what is kept.
        began: when the demo did, in seconds since 1970.
        progress: shows the steps of a job.
    """

    cosmos: Administration
    strategy: str
    folder: Path
    began: float
    progress: Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Act:
    """What an act shows.

    Attributes:
        title: what was done.
        expected: what had to come out.
        found: what came out.
        report: page to look at.
        findings: how many the report has, by rule: more than came out where it has several about one entity.
        seconds: how long it took.
        remark: what else there is to say.
        failure: what else is wrong; empty if nothing is.
    """

    title: str
    expected: frozenset[Found]
    found: frozenset[Found]
    report: Path
    findings: Mapping[str, int]
    seconds: float
    remark: str = ""
    failure: str = ""

    @property
    def problem(self) -> str | None:
        """What is wrong; None if it came out as it had to."""
        if self.failure or self.found == self.expected:
            return self.failure or None
        missing, surplus = self.expected - self.found, self.found - self.expected
        return f"{self.title}: missing {sorted(missing)}, not expected {sorted(surplus)}. See {self.report}."


def unavailable() -> str | None:
    """Why there are no such acts on this machine; None if there are."""
    try:
        from spark_jobs.spark.session import require_java  # noqa: PLC0415  # Spark is for developers only.

        require_java()
    except ImportError:
        return "The audit is left out: Spark is not installed."
    except ConfigurationError as error:
        return f"The audit is left out. {error}"
    return None


def audit_of_the_game(scene: Scene) -> Act:
    """What the game left is in order."""
    return _audit(scene, "Audit of what the game left", DATABASE, frozenset())


def audit_of_a_damaged_copy(scene: Scene) -> Act:
    """Damage of every kind is found, and nothing else."""
    copy = copies.without_garbage(copies.read(scene.cosmos, DATABASE))
    expected = damaged(copy)
    copies.write(scene.cosmos, DAMAGED, copy)
    return _audit(
        scene,
        "Audit of a copy with damage of every kind",
        DAMAGED,
        frozenset(expected),
        garbage_after=LONG,
        awaited_after=LONG,
        left_after=LONG,
    )


def clean_up_of_an_old_copy(scene: Scene) -> Act:
    """A month later records of old commits may go; they go, and what is left is in order."""
    begun = time.monotonic()
    copies.write(scene.cosmos, OLD, copies.read(scene.cosmos, DATABASE))
    scene.cosmos.advance_clock(MONTH)
    dry, real = (_clean_up(scene, delete=delete) for delete in (False, True))
    rest = _audit(scene, "Clean-up of a copy a month later, and an audit of what is left", OLD, frozenset())
    remark = f"{dry:,} documents would go; {real:,} were removed"
    remark += f"; {rest.remark}" if rest.remark else ""
    failure = "" if dry == real and not rest.remark else f"{rest.title}: {remark}."
    return replace(rest, remark=remark, failure=failure, seconds=time.monotonic() - begun)


ACTS: Final[dict[str, Callable[[Scene], Act]]] = {
    "A day passes: nothing is too recent to judge. Spark audits what the game left. All has to be in order.": audit_of_the_game,
    "A copy is damaged in every way the audit knows, and another day passes. Spark audits it.": audit_of_a_damaged_copy,
    "A month passes. Spark cleans up a copy, and audits what is left.": clean_up_of_an_old_copy,
}
"""By what announces them."""


def _audit(scene: Scene, title: str, database: str, expected: frozenset[Found], **limits: timedelta) -> Act:
    from spark_jobs.auditor.auditor import Auditor, Options  # noqa: PLC0415  # See `unavailable`.

    begun = time.monotonic()
    scene.cosmos.advance_clock(DAY)
    out = scene.folder / database
    with _stage(scene, database, **limits) as stage:
        garbage = Auditor(stage).run(Options(str(out))).garbage
    lines = (out / "findings.jsonl").read_text().splitlines()
    findings = [(item["rule"], item["entity"]) for item in map(loads, lines)]
    remark = (
        f"{garbage:,} staged documents of lost attempts are for clean-up to take" if garbage and not expected else ""
    )
    rules = Counter(rule for rule, _ in findings)
    return Act(title, expected, frozenset(findings), out / "report.html", rules, time.monotonic() - begun, remark)


def _clean_up(scene: Scene, *, delete: bool) -> int:
    """Returns how many documents would go, or went."""
    from spark_jobs.cleaner.cleaner import Cleaner, Options  # noqa: PLC0415
    from spark_jobs.cleaner.summary import REMOVED  # noqa: PLC0415  # See `unavailable`.
    from spark_jobs.cleaner.verdicts import GOES  # noqa: PLC0415

    with _stage(scene, OLD) as stage:
        summary = Cleaner(stage).run(Options(str(scene.folder / f"{OLD}-cleanup"), delete=delete))
    return summary.total(REMOVED if delete else GOES)


@contextmanager
def _stage(scene: Scene, database: str, **limits: timedelta) -> Iterator[Any]:
    """What a job works with, by the account's clock: that of this machine was not moved on."""
    from exactlyonce.values.lifetimes import Retention  # noqa: PLC0415
    from spark_jobs.job.configuration import Account, Job  # noqa: PLC0415  # See `unavailable`.
    from spark_jobs.source.account import Beginning  # noqa: PLC0415
    from spark_jobs.spark.session import session  # noqa: PLC0415
    from spark_jobs.work import Work, source_of  # noqa: PLC0415

    games = ranges.using(STRATEGIES[scene.strategy])
    entities = (games, boards.using(reading(games)))
    live = datetime.fromtimestamp(scene.began, timezone.utc)
    job = Job.of(entities, database=database, consumers={"leader-board": "board"}, live_since=live, **limits)
    account = Account(scene.cosmos.endpoint, scene.cosmos.key)
    spark = session("demo")
    with scene.progress() as progress:
        beginning = Beginning.of(scene.cosmos.now(), Retention())
        yield Work(spark, job, account, source_of(spark, job, account), beginning, progress)
