"""What a newcomer sees: progress while it runs, and a summary of each act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from demo.auditing import Act
from demo.costs import Cost
from demo.late import Late
from demo.options import Options
from demo.oracle import Evidence, Finding
from demo.play import Progress
from demo.story import Story
from demo.trouble import Counted

_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a demo showed."""

    options: Options
    deliveries: int
    progress: Progress
    injected: Counted
    evidence: Evidence
    findings: Sequence[Finding]
    requests: int
    charge: float
    seconds: float
    costs: Sequence[Cost] = ()
    acts: Sequence[Act] = ()
    late: Late | None = None

    @property
    def duplicates(self) -> int:
        """Deliveries beyond the first of each shot, as they were sent; kills and lost replies add more."""
        return self.deliveries - self.options.shots


@contextmanager
def progress_bar(console: Console, deliveries: int) -> Iterator[Callable[[Progress], None]]:
    """Show progress until the block ends."""
    columns = (
        TextColumn("{task.description:>13}"),
        BarColumn(bar_width=12),
        TextColumn("{task.completed} sent · {task.fields[writes]} writes · {task.fields[waiting]} waiting"),
        TextColumn("· {task.fields[kills]} killed"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("starting", total=deliveries, writes=0, waiting=0, kills=0)
        yield lambda progress: bar.update(
            task,
            description=progress.act,
            completed=progress.sent,
            writes=progress.writes,
            waiting=progress.waiting,
            kills=progress.kills,
        )


def show_game(story: Story, report: Report) -> None:
    """Print what happened in the game, and what came of it."""
    story.console.print(_game(report))
    for kind, number in Counter(finding.kind for finding in report.findings).most_common():
        story.tell(f"[red]{number} times: {kind}[/]")
        for finding in [item for item in report.findings if item.kind == kind][:_EXAMPLES]:
            story.add(f"{finding.game} {finding.detail}")
    colour = "red" if report.findings else "green"
    story.tell(f"[bold {colour}]{len(report.findings)} violations of exactly-once processing.[/]")


def _game(report: Report) -> Table:
    table = Table(title="Shooting range", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(justify="right")
    distinct = len({envelope.id for envelope in report.evidence.outcomes})
    messages = report.options.shots + distinct
    rows = (
        ("shots fired", report.options.shots),
        ("deliveries sent", report.deliveries),
        ("  of them duplicates", f"{report.duplicates} ({report.duplicates / report.options.shots:.0%})"),
        ("shots over HTTP, each with one answer", len(report.progress.answers)),
        ("  tries without an answer", report.progress.unanswered),
        ("  answers given again", report.progress.replayed),
        ("replies lost after the write was applied", report.injected.lost_after),
        ("replies lost before", report.injected.lost_before),
        ("requests throttled", report.injected.throttled),
        *_of_the_bus(report),
        ("reads from lagging replicas", "20 %" if report.options.faults else "none"),
        ("function hosts killed (SIGKILL)", report.progress.kills),
        ("outcomes that changed places on their way to the board", report.progress.displaced),
        ("games", len(report.evidence.states)),
        ("accepted writes of games", sum(map(len, report.evidence.states.values()))),
        ("distinct outcomes published", distinct),
        ("  copies among them, for the next handler to drop", len(report.evidence.outcomes) - distinct),
        ("messages in poison queues", report.evidence.poison),
        ("requests to Cosmos DB per message, trouble included", f"{report.requests / messages:.1f}"),
        ("request units per message, trouble included", f"{report.charge / messages:.1f}"),
        ("seconds", f"{report.seconds:.0f}"),
    )
    for name, value in rows:
        table.add_row(name, str(value))
    colour = "red" if report.findings else "green"
    for gap in report.progress.gaps:
        table.add_row(f"the board of {gap}", report.progress.recovery)
    table.add_section()
    table.add_row(f"[{colour}]violations[/]", f"[{colour}]{len(report.findings)}[/]")
    return table


def _of_the_bus(report: Report) -> tuple[tuple[str, object], ...]:
    if report.options.transport != "servicebus":
        return ()
    how = f"sessions {_switch(report.options.sessions)}, batches {_switch(report.options.batches)}"
    return ("on Service Bus", how), ("locks and replies lost at the broker", report.injected.at_the_broker)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def costs_table(costs: Sequence[Cost]) -> Table:
    """What a message of each kind costs, beside what is allowed."""
    table = Table(title="What it costs: requests to Cosmos DB per message, no trouble", title_justify="left")
    table.add_column("messages")
    table.add_column("kind")
    for name in ("requests", "allowed", "rounds", "RU"):
        table.add_column(name, justify="right")
    for cost in costs:
        rounds = " / ".join(str(rounds) for rounds in (cost.rounds, cost.rounds_apart) if rounds)
        colour = "red" if cost.operations > cost.limit else "green"
        table.add_row(
            cost.messages,
            cost.kind,
            f"[{colour}]{cost.operations:.2f}[/]",
            f"{cost.limit:g}",
            rounds,
            f"{cost.charge:.1f}",
        )
    table.caption = "Rounds: requests one after the other; the second figure where a page is written."
    return table


def show_act(story: Story, act: Act) -> None:
    """Say what an act of Spark shows."""
    colour, number = "red" if act.problem else "green", sum(act.findings.values())
    judged = (
        "not what had to come out"
        if act.problem
        else f"all {len(act.expected)} that were planted"
        if act.expected
        else "in order"
    )
    story.tell(f"{act.title}: [{colour}]{number} findings, {judged}[/], in {act.seconds:.0f} s.")
    if act.remark:
        story.add(f"{act.remark}.")
    for rule, number in sorted(act.findings.items()):
        story.add(f"{rule}: {number}")
    story.add(str(act.report))


def show_late(story: Story, late: Late) -> None:
    """Say what became of copies that came long after."""
    colour = "red" if late.problem else "green"
    story.tell(f"[{colour}]After three weeks the copy was {late.weeks}, and after a year {late.year}.[/]")
