"""`python -m devtools.modelcheck`: explore scenarios, and print what was found as a table."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace

from rich.console import Console
from rich.table import Table

from devtools.modelcheck.catalogue import LARGE, SMALL
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.search import Report, explore


def main() -> int:
    """Explore; the exit code is 0 if nothing fell."""
    options = _options()
    scenarios = [one for one in (*SMALL, *(LARGE if options.large else ())) if options.only in one.name]
    console = Console()
    table = Table(title="Scenarios, explored with the production generators", title_justify="left")
    for name in ("scenario", "states", "transitions", "depth", "seconds", "transitions/s", "verdict"):
        table.add_column(name, justify="left" if name in ("scenario", "verdict") else "right")
    fell = False
    for scenario in scenarios:
        started = time.monotonic()
        report = _explored(console, scenario, options.limit)
        seconds = time.monotonic() - started
        verdict = _verdict(scenario, report)
        fell = fell or verdict not in ("holds", "holds so far")
        figures = (report.states, report.transitions, report.depth)
        speed = report.transitions / seconds
        table.add_row(scenario.name, *(f"{one:,}" for one in figures), f"{seconds:.1f}", f"{speed:,.0f}", verdict)
        for step in report.story:
            console.print(f"    {step}")
    console.print(table)
    return int(fell)


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m devtools.modelcheck", description=main.__doc__)
    parser.add_argument("--large", action="store_true", help="the large scenarios too")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose names contain this")
    parser.add_argument("--limit", type=int, default=5_000_000, help="most states of a scenario (default %(default)s)")
    return parser.parse_args()


def _explored(console: Console, scenario: Scenario, limit: int) -> Report:
    with console.status(scenario.name) as status:

        def show(report: Report) -> None:
            status.update(f"{scenario.name}: {report.states:,} states, depth {report.depth}")

        return explore(scenario, limit, liveness=True, show=show)


def _verdict(scenario: Scenario, report: Report) -> str:
    if report.violation is not None:
        return report.violation
    if report.stuck:
        return f"termination: {report.stuck} states from which the work cannot be finished"
    if not report.complete:
        return "holds so far"
    missing = scenario.witnesses - report.witnessed
    return f"never seen: {', '.join(sorted(missing))}" if missing else "holds"


if __name__ == "__main__":
    sys.exit(main())
