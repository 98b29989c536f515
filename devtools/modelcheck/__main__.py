"""`python -m devtools.modelcheck`: explore scenarios, and print what was found as a table.

Findings are kept, so that a run that was interrupted goes on where it was. The exit code is 0 if nothing fell.
"""

from __future__ import annotations

import platform
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from devtools.modelcheck.beside import catalogue as beside
from devtools.modelcheck.catalogue import LARGE, SMALL, STREAM
from devtools.modelcheck.matrix import matrix
from devtools.modelcheck.reporting import Finding, Findings, crossed, finding, markdown
from devtools.modelcheck.scenarios import Scenario
from devtools.modelcheck.search import Report, explore

TABLE, MATRIX = "table", "matrix"


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore; return the exit code."""
    options = _options(arguments)
    console = Console()
    kept = Findings(options.findings)
    large = (*LARGE, *beside.LARGE) if options.large else ()
    scenarios = (*SMALL, STREAM, *beside.SMALL, *large)
    found = _all_explored(console, kept, scenarios, options)
    console.print(_table(found))
    combined = _all_explored(console, kept, tuple(matrix()) if options.matrix else (), options)
    if options.docs is not None:
        on = f"On one core of {platform.machine()}, Python {platform.python_version()}, the search for stuck states included."
        _documented(options.docs, TABLE, f"{on}\n\n{markdown(found)}")
        if combined:
            _documented(options.docs, MATRIX, crossed(combined))
    return int(any(one.fell for one in (*found, *combined)))


def _all_explored(
    console: Console, kept: Findings, scenarios: Sequence[Scenario], options: Namespace
) -> Sequence[Finding]:
    """Explore what has not been explored before, and keep what is found."""
    found: list[Finding] = []
    for scenario in scenarios:
        if options.only not in scenario.name:
            continue
        earlier = None if options.again else kept.of(scenario)
        one = earlier or _explored(console, scenario, options.limit)
        console.print(f"{one.name}: {one.verdict}{' (found earlier)' if earlier else f', {one.seconds:.1f} s'}")
        kept.keep(one)
        found.append(one)
    return found


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m devtools.modelcheck", description=__doc__)
    parser.add_argument("--large", action="store_true", help="the large scenarios too")
    parser.add_argument("--matrix", action="store_true", help="every preset under every trouble too")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose names contain this")
    parser.add_argument("--limit", type=int, default=5_000_000, help="most states of a scenario (default %(default)s)")
    parser.add_argument("--again", action="store_true", help="also what was explored before with the same code")
    parser.add_argument("--findings", type=Path, default=Path(".make/findings.json"), help="file to keep findings in")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="put the table into this page")
    return parser.parse_args(arguments)


def _explored(console: Console, scenario: Scenario, limit: int) -> Finding:
    started = time.monotonic()
    with console.status(scenario.name) as status:

        def show(report: Report) -> None:
            speed = report.transitions / (time.monotonic() - started)
            status.update(
                f"{scenario.name}: {report.states:,} states, depth {report.depth}, {speed:,.0f} transitions/s"
            )

        report = explore(scenario, limit, liveness=True, show=show)
    for line in report.ending:
        console.print(f"    {line}")
    return finding(scenario, report, time.monotonic() - started)


def _table(findings: Sequence[Finding]) -> Table:
    table = Table(title="Scenarios, explored with the production generators", title_justify="left")
    for name in ("scenario", "states", "transitions", "depth", "seconds", "transitions/s", "verdict"):
        table.add_column(name, justify="left" if name in {"scenario", "verdict"} else "right")
    for one in findings:
        figures = (f"{one.states:,}", f"{one.transitions:,}", str(one.depth), f"{one.seconds:.1f}", f"{one.speed:,}")
        table.add_row(one.name, *figures, one.verdict)
    return table


def _documented(page: Path, mark: str, text: str) -> None:
    """Put a text between its marks in a page."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}{text}{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
