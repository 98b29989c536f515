"""What was found, kept in a file, so that a long exploration may be interrupted, and shown as a table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from multiprocessing import Manager
from pathlib import Path
from typing import Final

import exactlyonce
import yieldcheck
from verification import checker
from verification.checker.search import Progress, Report, explore
from verification.scenarios.catalogue import everything
from verification.world.scenario import Scenario

HOLDS: Final = "holds"
SO_FAR: Final = "holds so far"


@dataclass(frozen=True, slots=True)
class Finding:
    """What the exploration of one scenario came to.

    Attributes:
        verdict: "holds", "holds so far" if there were too many states, or what fell.
    """

    name: str
    states: int
    transitions: int
    depth: int
    seconds: float
    verdict: str
    fingerprint: str

    @property
    def speed(self) -> int:
        return int(self.transitions / self.seconds) if self.seconds else 0

    @property
    def fell(self) -> bool:
        return self.verdict not in (HOLDS, SO_FAR)


def finding(scenario: Scenario, report: Report, seconds: float) -> Finding:
    figures = (report.states, report.transitions, report.depth, round(seconds, 1))
    return Finding(scenario.name, *figures, _verdict(scenario, report), fingerprint(scenario))


class Findings:
    """Findings in a file. One whose scenario or code has changed since does not count.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        stored = json.loads(path.read_text()) if path.exists() else []
        self._found = {item["name"]: Finding(**item) for item in stored}

    def of(self, scenario: Scenario) -> Finding | None:
        """The finding on a scenario; None if there is none that still counts."""
        found = self._found.get(scenario.name)
        return found if found is not None and found.fingerprint == fingerprint(scenario) else None

    def keep(self, found: Finding) -> None:
        self._found[found.name] = found
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps([asdict(item) for item in self._found.values()], indent=1) + "\n")


def fingerprint(scenario: Scenario) -> str:
    """A digest of a scenario, of the checker's code and of the library's."""
    left_out = {"chores", "clean", "host", "menders", "settle", "sweep", "witnesses"}
    names = (field.name for field in fields(scenario) if field.name not in left_out)
    shape = {name: getattr(scenario, name) for name in names}
    hashed = sha256(f"{shape} {sorted(scenario.witnesses)}".encode())
    verification, library, engine = (Path(item.__file__ or "").parent for item in (checker, exactlyonce, yieldcheck))
    rooms = (verification.parent / name for name in ("world", "explorers", "endless", "scenarios", "twins", "checker"))
    for path in (path for folder in (*rooms, library, engine) for path in sorted(folder.rglob("*.py"))):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()[:16]


def summary(kinds: Mapping[str, Sequence[Finding]]) -> str:
    """A table for the documentation: a row for each kind of world."""
    lines = ["| worlds | scenarios | states | states of the largest | verdict |", f"| ---{' | ---:' * 3} | --- |"]
    for kind, findings in kinds.items():
        states = [finding.states for finding in findings]
        verdicts = ", ".join(sorted({finding.verdict for finding in findings}))
        lines.append(f"| {kind} | {len(states)} | {sum(states):,} | {max(states):,} | {verdicts} |")
    return "\n".join(lines) + "\n"


def _verdict(scenario: Scenario, report: Report) -> str:
    if report.violation is not None:
        return report.violation
    if report.stuck:
        return f"termination: {report.stuck} states from which the work cannot be finished"
    if not report.complete:
        return SO_FAR
    missing = scenario.witnesses - report.witnessed
    return f"never seen: {', '.join(sorted(missing))}" if missing else HOLDS


_LOOK_EVERY: Final = 1.0  # Seconds.

Found = tuple[Finding, tuple[str, ...]]
"""A finding, and how it came to it if anything fell."""


def explored(
    scenarios: Sequence[Scenario], limit: int, jobs: int, show: Callable[[Sequence[str]], None]
) -> Iterator[Found]:
    """Explore scenarios of the catalogue; each as soon as it is done.

    Args:
        scenarios: to explore. They go to the processes by their names, since broken twins cannot be sent.
        show: called now and then with the progress of each running search.
    """
    with Manager() as manager, ProcessPoolExecutor(jobs) as pool:
        progress: MutableMapping[str, str] = manager.dict()
        waiting: set[Future[Found]] = {pool.submit(_explore, scenario.name, limit, progress) for scenario in scenarios}
        try:
            while waiting:
                done, waiting = wait(waiting, _LOOK_EVERY, FIRST_COMPLETED)
                for item in done:
                    yield item.result()
                show(sorted(progress.values()))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _explore(name: str, limit: int, progress: MutableMapping[str, str]) -> Found:
    scenario = next(item for item in everything() if item.name == name)
    started = time.process_time()

    def show(report: Progress) -> None:
        speed = report.transitions / (time.process_time() - started)
        progress[name] = f"{name}: {report.states:,} states, depth {report.depth}, {speed:,.0f} transitions/s"

    report = explore(scenario, limit, liveness=True, show=show)
    progress.pop(name, None)
    return finding(scenario, report, time.process_time() - started), report.ending
