"""`python -m verification.simulation`: simulate for a while, and print what happened as a table."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from verification.simulation.fleet import MESSAGES, Tally, run_fleet
from verification.simulation.twins import NAMES
from verification.simulation.wire import FAULTS, WITNESSES

_EXAMPLES: Final = 3


@contextmanager
def progress_bar(console: Console, options: Namespace, tally: Tally) -> Iterator[Callable[[], None]]:
    """Show progress until the block ends."""
    columns = BarColumn(bar_width=20), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=options.seconds or None)

        def show() -> None:
            counts = f"{tally.messages:,} messages · {faults(tally):,} faults · {tally.episodes} seeds"
            said = f"{counts} · {tally.violations} violations"
            bar.update(task, completed=min(tally.seconds, options.seconds), description=said)

        yield show


def faults(tally: Tally) -> int:
    return sum(tally.counted[kind] for kind in FAULTS)


def show_table(console: Console, options: Namespace, tally: Tally) -> None:
    title = f"Simulation of {options.twin or 'the shipped protocols'}"
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    last = options.seed + max(tally.episodes, 1) - 1
    rows = (
        ("messages", f"{tally.messages:,}"),
        ("deliveries", f"{tally.deliveries:,}"),
        ("faults", f"{faults(tally):,}"),
        *((f"  {kind}", f"{tally.counted[kind]:,}") for kind in FAULTS),
        ("seen on the way", ""),
        *((f"  {kind}", f"{tally.counted[kind]:,}") for kind in WITNESSES),
        ("seeds", f"{tally.episodes:,} ({options.seed} to {last})"),
        ("entities", f"{tally.entities:,}"),
        ("virtual hours", f"{tally.hours:,.0f}"),
        ("seconds", f"{tally.seconds:.0f}"),
        ("messages/s", f"{tally.messages / max(tally.seconds, 1e-9):,.0f}"),
    )
    for name, value in rows:
        table.add_row(name, value)
    if tally.episodes == 1:
        table.add_row("digest of the history", tally.digest)
    colour = "red" if tally.violations else "green"
    table.add_section()
    table.add_row(f"[{colour}]violations[/]", f"[{colour}]{tally.violations}[/]")
    console.print(table)


def show_violation(console: Console, options: Namespace, tally: Tally) -> None:
    """Print how to see the first violation again, and what led to it; nothing if there is none."""
    guilty = tally.guilty
    if guilty is None:
        return
    first = guilty.violations[0]
    size = f" MESSAGES={options.messages}" if options.messages != MESSAGES else ""
    twin = f" TWIN='{options.twin}'" if options.twin else ""
    console.print(f"[bold red]Seed {guilty.seed}[/]: {len(guilty.violations)} violations. To see them again:")
    console.print(f"    make simulate SEED={guilty.seed} SECONDS=0{size}{twin}", highlight=False)
    for violation in guilty.violations[:_EXAMPLES]:
        where = f" (entity {violation.tally})" if violation.tally else ""
        console.print(escape(f"{violation.property}: {violation.detail}{where}"), highlight=False)
    if guilty.story:
        console.print(f"What happened to entity {first.tally}, in virtual seconds:")
        for line in guilty.story:
            console.print(escape(line), highlight=False)


def main() -> int:
    """Simulate; the exit code is 0 if nothing fell."""
    options = _options()
    console = Console()
    tally = Tally()
    try:
        with progress_bar(console, options, tally) as show:
            run_fleet(options, tally, show)
    except KeyboardInterrupt:
        console.print("Stopped; this is what there was so far.")
    show_table(console, options, tally)
    show_violation(console, options, tally)
    return int(tally.violations > 0)


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m verification.simulation", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for how long; 0 for one seed (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first episode; they count up (default %(default)s)")
    parser.add_argument(
        "--messages", type=int, default=MESSAGES, help="from outside, in each episode (default %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--twin", default="", choices=("", *NAMES), metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
