"""`python -m verification.mutants`: look for every mutant, and print those that were not found.

Those that show outside the model's world only are run with the unit tests that stand in for the checker. With `--changed` it
looks for those only whose functions have changed, and with `--write` it writes down what it found: so both together carry the
tables on after a change. A function that was moved, or whose local variables got other names, is one that has not changed.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import replace
from os import cpu_count
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from verification.mutants.finding import find_again, reached
from verification.mutants.outside import fails
from verification.mutants.reviewed import FOLDER, SoFar, Tables, Verdict, carried
from verification.mutants.source import Mutant, all_mutants


def main() -> int:
    """Look for them; the exit code is 0 if every survivor is listed, and every one that is listed is what its list says."""
    options = _options()
    tables, changed = carried(Tables.read(), all_mutants())
    mutants = [
        item for item in all_mutants() if options.only in item.name and (not options.changed or item.name in changed)
    ]
    console = Console()
    verdicts = _looked_for(console, mutants, tables, options)
    _print(console, verdicts)
    surprises = [*_unlisted(console, mutants, verdicts, tables), *_found_after_all(console, verdicts, tables)]
    if not options.no_tests:
        surprises += _unproven(console, mutants, tables, options.jobs)
    if options.write:
        found = {name: item for name, item in {**tables.found, **verdicts}.items() if item.world}
        order = {mutant.name: place for place, mutant in enumerate(all_mutants())}
        sort = dict(sorted(found.items(), key=lambda row: order[row[0]]))
        outside = {name: test for name, test in tables.outside.items() if name not in found}
        replace(tables, found=sort, outside=outside, due=tables.due - found.keys()).write()
        console.print(f"Written: {FOLDER}")
    return int(bool(surprises))


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m verification.mutants", description=main.__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose names contain this")
    parser.add_argument("--changed", action="store_true", help="mutants of functions that have changed")
    parser.add_argument(
        "--so-far", type=Path, metavar="FILE", help="keep verdicts here as they come, and begin with these"
    )
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes (default %(default)s)")
    parser.add_argument(
        "--no-tests", action="store_true", help="do not run the unit tests that stand in for the checker"
    )
    parser.add_argument("--write", action="store_true", help="write down where each was found, for the tests")
    return parser.parse_args()


def _looked_for(console: Console, mutants: Sequence[Mutant], tables: Tables, options: Namespace) -> dict[str, Verdict]:
    """What becomes of each. Where only some are looked for, the first look is where they were found before."""
    if not mutants:
        return {}
    so_far = SoFar(options.so_far)
    verdicts = {mutant.name: verdict for mutant in mutants if (verdict := so_far.of(mutant)) is not None}
    left = [mutant for mutant in mutants if mutant.name not in verdicts]
    if left:
        reached()  # Once, before there are several processes.
    with ProcessPoolExecutor(options.jobs) as pool:
        before = tables.found if options.changed else {}
        looks = {pool.submit(find_again, mutant, before.get(mutant.name)): mutant for mutant in left}
        for look in track(as_completed(looks), "Mutants", len(left), console=console):
            mutant, verdict = looks[look], look.result()
            so_far.keep(mutant, verdict)
            verdicts[mutant.name] = verdict
    return verdicts


def _print(console: Console, verdicts: dict[str, Verdict]) -> None:
    table = Table(title="Where mutants are found", title_justify="left")
    for title in ("world", "by", "mutants"):
        table.add_column(title, justify="right" if title == "mutants" else "left")
    by = Counter((verdict.world or "nowhere", verdict.how.partition(":")[0]) for verdict in verdicts.values())
    for (world, how), number in by.items():
        table.add_row(world, how, str(number))
    console.print(table)


def _unlisted(console: Console, mutants: Sequence[Mutant], verdicts: dict[str, Verdict], tables: Tables) -> list[str]:
    """Survivors that nobody has looked at: a hole in the checker, or a guard that nobody needs."""
    listed = tables.harmless.keys() | tables.outside.keys()
    survivors = [item for item in mutants if not verdicts[item.name].world and item.name not in listed]
    for mutant in survivors:
        console.print(f"[bold red]Not found, and not listed:[/] {mutant.name}\n{mutant.diff}\n", highlight=False)
    return [mutant.name for mutant in survivors]


def _found_after_all(console: Console, verdicts: dict[str, Verdict], tables: Tables) -> list[str]:
    listed = tables.harmless.keys() | tables.outside.keys()
    wrong = [name for name, verdict in verdicts.items() if verdict.world and name in listed]
    for name in wrong:
        console.print(f"[bold red]Listed, but found:[/] {name}: {verdicts[name].how}", highlight=False)
    return wrong


def _unproven(console: Console, mutants: Sequence[Mutant], tables: Tables, jobs: int) -> list[str]:
    outside = tables.outside
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
