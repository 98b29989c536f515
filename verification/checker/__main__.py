"""`python -m verification.checker`: explore scenarios, and print what was found as tables.

Findings are kept, so that a run that was interrupted goes on where it was. The exit code is 0 if nothing fell.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from os import cpu_count
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from verification.checker.report import Finding, Findings, explored, summary
from verification.scenarios.catalogue import CATALOGUE
from verification.world.scenario import Scenario

BEGIN: Final = "<!-- summary: begin -->\n"
END: Final = "<!-- summary: end -->\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore; return the exit code."""
    options = _options(arguments)
    shown = {kind: (*item.small, *(item.large if options.large else ())) for kind, item in CATALOGUE.items()}
    wanted = [scenario for some in shown.values() for scenario in some if options.only in scenario.name]
    console = Console()
    if options.list:
        console.print(_table([Findings(options.findings).of(scenario) or scenario for scenario in wanted]))
        return 0
    found = _all_explored(console, wanted, options)
    console.print(_table(found.values()))
    if options.docs is not None:
        kinds = {kind: [found[scenario.name] for scenario in some] for kind, some in shown.items()}
        _document(options.docs, summary(kinds))
    return int(any(finding.fell for finding in found.values()))


def _all_explored(console: Console, scenarios: Sequence[Scenario], options: Namespace) -> dict[str, Finding]:
    kept = Findings(options.findings)
    found: dict[str, Finding] = {}
    for scenario in scenarios:
        earlier = None if options.again else kept.of(scenario)
        if earlier is not None:
            console.print(f"{earlier.name}: {earlier.verdict} (found earlier)")
            found[earlier.name] = earlier
    left = [item for item in scenarios if item.name not in found]
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
    parser.add_argument("--list", action="store_true", help="only list the scenarios, with earlier findings")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="put a summary of the small scenarios into this page")
    options = parser.parse_args(arguments)
    if options.docs is not None and (options.only or options.large or options.list):
        parser.error("--docs sums up the small scenarios: leave out --only, --large and --list.")
    return options


def _table(rows: Iterable[Finding | Scenario]) -> Table:
    table = Table(title="Scenarios, explored with the production generators", title_justify="left")
    for name in ("scenario", "states", "transitions", "depth", "seconds", "transitions/s", "verdict"):
        table.add_column(name, justify="left" if name in {"scenario", "verdict"} else "right")
    for row in rows:
        if isinstance(row, Scenario):
            table.add_row(row.name, *("-" * 5), "not explored")
        else:
            figures = (
                f"{row.states:,}",
                f"{row.transitions:,}",
                str(row.depth),
                f"{row.seconds:.1f}",
                f"{row.speed:,}",
            )
            table.add_row(row.name, *figures, row.verdict)
    return table


def _document(page: Path, text: str) -> None:
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
