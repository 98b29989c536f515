"""`python -m devtools.modelcheck.mutants`: look for every mutant, and print those that were not found.

Those that show outside the model's world only are run with the unit tests that stand in for the checker.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from os import cpu_count

from rich.console import Console
from rich.progress import track
from rich.table import Table

from devtools.modelcheck.mutants.finding import Verdict, all_mutants, find, reached
from devtools.modelcheck.mutants.outside import fails
from devtools.modelcheck.mutants.reviewed import WRITTEN, read_found, read_outside, write_found
from devtools.modelcheck.mutants.source import Mutant
from tests.model.harmless_mutants import HARMLESS


def main() -> int:
    """Look for them; the exit code is 0 if every survivor is listed, and every one that is listed is what its list says."""
    options = _options()
    mutants = [mutant for mutant in all_mutants() if options.only in mutant.name]
    console = Console()
    reached()  # Once, before there are several processes.
    with ProcessPoolExecutor(options.jobs) as pool:
        shown = track(pool.map(find, mutants), "Mutants", len(mutants), console=console)
        verdicts = dict(zip((mutant.name for mutant in mutants), shown, strict=True))
    _tell(console, verdicts)
    surprises = [*_unlisted(console, mutants, verdicts), *_found_after_all(console, verdicts)]
    if not options.no_tests:
        surprises += _unproven(console, mutants, options.jobs)
    if options.write:
        write_found({**read_found(), **verdicts} if options.only else verdicts)
        console.print(f"Written: {WRITTEN}")
    return int(bool(surprises))


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m devtools.modelcheck.mutants", description=main.__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose names contain this")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes (default %(default)s)")
    parser.add_argument(
        "--no-tests", action="store_true", help="do not run the unit tests that stand in for the checker"
    )
    parser.add_argument("--write", action="store_true", help="write down where each was found, for the tests")
    return parser.parse_args()


def _tell(console: Console, verdicts: dict[str, Verdict]) -> None:
    table = Table(title="Where mutants are found", title_justify="left")
    for title in ("world", "by", "mutants"):
        table.add_column(title, justify="right" if title == "mutants" else "left")
    by = Counter((verdict.world or "nowhere", verdict.how.partition(":")[0]) for verdict in verdicts.values())
    for (world, how), number in by.items():
        table.add_row(world, how, str(number))
    console.print(table)


def _unlisted(console: Console, mutants: Sequence[Mutant], verdicts: dict[str, Verdict]) -> list[str]:
    """Survivors that nobody has looked at: a hole in the checker, or a guard that nobody needs."""
    listed = HARMLESS.keys() | read_outside().keys()
    survivors = [one for one in mutants if not verdicts[one.name].world and one.name not in listed]
    for mutant in survivors:
        console.print(f"[bold red]Not found, and not listed:[/] {mutant.name}\n{mutant.diff}\n", highlight=False)
    return [mutant.name for mutant in survivors]


def _found_after_all(console: Console, verdicts: dict[str, Verdict]) -> list[str]:
    wrong = [
        name for name, verdict in verdicts.items() if verdict.world and name in HARMLESS.keys() | read_outside().keys()
    ]
    for name in wrong:
        console.print(f"[bold red]Listed, but found:[/] {name}: {verdicts[name].how}", highlight=False)
    return wrong


def _unproven(console: Console, mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Mutants whose unit test does not fail with them."""
    outside = read_outside()
    listed = [mutant for mutant in mutants if mutant.name in outside]
    with ThreadPoolExecutor(jobs) as pool:
        failing = pool.map(lambda mutant: fails(outside[mutant.name], mutant), listed)
        shown = track(zip(listed, failing, strict=True), "Unit tests", len(listed), console=console)
        passed = [mutant.name for mutant, failed in shown if not failed]
    for name in passed:
        console.print(f"[bold red]Its unit test does not fail:[/] {name}: {outside[name]}", highlight=False)
    return passed


if __name__ == "__main__":
    sys.exit(main())
