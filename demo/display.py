"""What a newcomer sees: progress while it runs, a summary at the end."""

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
from demo.trouble import Counted

_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Report:
    """Everything in the summary."""

    options: Options
    deliveries: int
    progress: Progress
    injected: Counted
    evidence: Evidence
    findings: Sequence[Finding]
    costs: Sequence[Cost]
    requests: int
    charge: float
    seconds: float
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


def show(console: Console, report: Report) -> None:
    """Print the summary."""
    console.print(_game(report))
    if report.costs:
        console.print(_costs(report.costs))
    if report.findings:
        _show_findings(console, report.findings)
    if report.acts:
        console.print(_acts(report.acts))
        for act in report.acts:
            console.print(f"{act.title}: {act.report}", soft_wrap=True)


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
        *_a_year_later(report),
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


def _a_year_later(report: Report) -> tuple[tuple[str, object], ...]:
    if report.late is None:
        return ()
    return (
        ("a copy of a shot with a number, a year later", report.late.numbered),
        ("a copy of one without, a year later", report.late.foreign),
    )


def _of_the_bus(report: Report) -> tuple[tuple[str, object], ...]:
    if report.options.transport != "servicebus":
        return ()
    how = f"sessions {_switch(report.options.sessions)}, batches {_switch(report.options.batches)}"
    return ("on Service Bus", how), ("locks and replies lost at the broker", report.injected.at_the_broker)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _costs(costs: Sequence[Cost]) -> Table:
    table = Table(title="What it costs: requests to Cosmos DB per message, no trouble", title_justify="left")
    table.add_column("preset")
    table.add_column("message")
    for name in ("requests", "allowed", "rounds", "RU"):
        table.add_column(name, justify="right")
    for cost in costs:
        rounds = " / ".join(str(rounds) for rounds in (cost.rounds, cost.rounds_apart) if rounds)
        colour = "red" if cost.operations > cost.limit else "green"
        table.add_row(
            cost.preset,
            cost.kind,
            f"[{colour}]{cost.operations:.2f}[/]",
            f"{cost.limit:g}",
            rounds,
            f"{cost.charge:.1f}",
        )
    table.caption = (
        "Rounds: requests one after the other; the second figure where records or outputs are written apart."
    )
    return table


def _acts(acts: Sequence[Act]) -> Table:
    table = Table(title="What is stored, as the audit sees it", title_justify="left")
    table.add_column("")
    for name in ("damage", "findings", "seconds"):
        table.add_column(name, justify="right")
    for act in acts:
        table.add_section()
        colour = "red" if act.problem else "green"
        table.add_row(act.title, str(len(act.expected)), f"[{colour}]{len(act.found)}[/]", f"{act.seconds:.0f}")
        if act.remark:
            table.add_row(f"  {act.remark}")
        for rule, number in sorted(Counter(rule for rule, _ in act.found).items()):
            table.add_row(f"  {rule}", "", str(number), "")
    return table


def _show_findings(console: Console, findings: Sequence[Finding]) -> None:
    for kind, number in Counter(finding.kind for finding in findings).most_common():
        console.print(f"[red]{number} times: {kind}[/]")
        for finding in [one for one in findings if one.kind == kind][:_EXAMPLES]:
            console.print(f"    {finding.game} {finding.detail}")
