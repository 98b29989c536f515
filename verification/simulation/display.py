"""What a simulation shows: progress while it runs, a table at the end, and the story of the first violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from verification.simulation.fleet import MESSAGES, Options, Tally
from verification.simulation.weather import FAULTS, WITNESSES

_EXAMPLES: Final = 3


@contextmanager
def progress_bar(console: Console, options: Options, tally: Tally) -> Iterator[Callable[[], None]]:
    """Show progress until the block ends."""
    columns = (
        BarColumn(bar_width=20),
        TextColumn(
            "{task.fields[messages]:,} messages · {task.fields[faults]:,} faults · {task.fields[episodes]} seeds"
        ),
        TextColumn("· {task.fields[violations]} violations"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=options.seconds or None, messages=0, faults=0, episodes=0, violations=0)

        def show() -> None:
            bar.update(
                task,
                completed=min(tally.seconds, options.seconds),
                messages=tally.messages,
                faults=faults(tally),
                episodes=tally.episodes,
                violations=tally.violations,
            )

        yield show


def faults(tally: Tally) -> int:
    """How many there were, of all kinds."""
    return sum(tally.counted[kind] for kind in FAULTS)


def show_table(console: Console, options: Options, tally: Tally) -> None:
    """Print everything that was counted."""
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


def show_violation(console: Console, options: Options, tally: Tally) -> None:
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
