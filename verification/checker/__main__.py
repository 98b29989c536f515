"""`python -m verification.checker`: explore scenarios, and print what was found as tables.

Findings are kept, so that a run that was interrupted goes on where it was. The exit code is 0 if nothing fell.
"""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from os import cpu_count
from pathlib import Path

from rich.console import Console
from rich.table import Table

from verification.checker.pool import explored
from verification.checker.report import Finding, Findings, markdown
from verification.scenarios.catalogue import CATALOGUE
from verification.world.scenario import Scenario


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore; return the exit code."""
    options = _options(arguments)
    shown = {mark: (*one.small, *(one.large if options.large else ())) for mark, one in CATALOGUE.items()}
    wanted = [one for some in shown.values() for one in some if options.only in one.name]
    console = Console()
    found = _all_explored(console, wanted, options)
    tables = {mark: [found[one.name] for one in some if one.name in found] for mark, some in shown.items()}
    console.print(_table([one for some in tables.values() for one in some]))
    if options.docs is not None:
        for mark, some in tables.items():
            if some:
                _documented(options.docs, mark, f"{_where()}\n\n{markdown(some)}")
    return int(any(one.fell for one in found.values()))


def _all_explored(console: Console, scenarios: Sequence[Scenario], options: Namespace) -> dict[str, Finding]:
    """Explore what has not been explored before, and keep what is found, by the scenarios' names."""
    kept = Findings(options.findings)
    found: dict[str, Finding] = {}
    for scenario in scenarios:
        earlier = None if options.again else kept.of(scenario)
        if earlier is not None:
            console.print(f"{earlier.name}: {earlier.verdict} (found earlier)")
            found[earlier.name] = earlier
    left = [one for one in scenarios if one.name not in found]
    with console.status("") as status:

        def show(searches: Sequence[str]) -> None:
            status.update("\n".join((f"{len(found)} of {len(scenarios)} scenarios", *searches)))

        for one, ending in explored(left, options.limit, options.jobs, show):
            console.print(f"{one.name}: {one.verdict}, {one.seconds:.1f} s")
            for line in ending:
                console.print(f"    {line}")
            kept.keep(one)
            found[one.name] = one
    return found


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m verification.checker", description=__doc__)
    parser.add_argument("--large", action="store_true", help="the large scenarios too")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose names contain this")
    parser.add_argument("--limit", type=int, default=5_000_000, help="most states of a scenario (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="searches at a time (default %(default)s)")
    parser.add_argument("--again", action="store_true", help="also what was explored before with the same code")
    parser.add_argument("--findings", type=Path, default=Path(".make/findings.json"), help="file to keep findings in")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="put the tables into this page")
    return parser.parse_args(arguments)


def _table(findings: Sequence[Finding]) -> Table:
    table = Table(title="Scenarios, explored with the production generators", title_justify="left")
    for name in ("scenario", "states", "transitions", "depth", "seconds", "transitions/s", "verdict"):
        table.add_column(name, justify="left" if name in {"scenario", "verdict"} else "right")
    for one in findings:
        figures = (f"{one.states:,}", f"{one.transitions:,}", str(one.depth), f"{one.seconds:.1f}", f"{one.speed:,}")
        table.add_row(one.name, *figures, one.verdict)
    return table


def _where() -> str:
    on = f"{platform.machine()}, Python {platform.python_version()}"
    return f"A core of {on} for each search; the search for stuck states is included."


def _documented(page: Path, mark: str, text: str) -> None:
    """Put a text between its marks in a page."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
    before, _, rest = page.read_text().partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}{text}{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
