"""`python -m demo`: play a game under trouble, judge it, say what it cost."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from rich.console import Console

from demo import costs, trouble
from demo.auditing import ACTS, Act, Scene, unavailable
from demo.bus import running_bus
from demo.display import Report, costs_table, progress_bar, show_act, show_game, show_late
from demo.late import a_year_later
from demo.options import Options, parse
from demo.oracle import judge
from demo.play import gather, play
from demo.shots import plan_deliveries, plan_shots
from demo.stack import APP, DATABASE, ROOT, running_stack
from demo.story import Story
from demo.ui import running_console
from spark_jobs.report.progress import shown
from spark_jobs.source.account import silence_health_checks

NEXT: Final = (
    "[bold green]Every shot took place exactly once.[/]",
    "Next: `make demo STRATEGY=naive` plays the same game with a plain read-handle-write-send function;",
    "`exactlyonce new shop` and `exactlyonce dev` run an app of your own (docs/quickstart.md).",
)
"""What is said at the end."""
NEXT_AFTER_NAIVE: Final = (
    "[bold]This is what exactlyonce prevents.[/]",
    "Next: `make demo` plays the same game with it.",
)


async def demonstrate(options: Options, story: Story, logs: Path, kept: Path) -> Report:
    """Everything between the first process and the last act.

    Args:
        options: of the demo.
        story: is told meanwhile.
        logs: folder of the processes' logs.
        kept: folder of the reports, which stay.
    """
    began = time.time()
    random = Random(options.seed)
    shots = plan_shots(options, random)
    deliveries = plan_deliveries(shots, options, random)
    app = ROOT / "demo" / "naive" if options.strategy == "naive" else APP
    trouble_or_none = "everything goes wrong" if options.faults else "nothing goes wrong"
    story.act(f"{options.shots:,} shots are fired at {options.games} games, and {trouble_or_none}.")
    story.add(f"Strategy {options.strategy}; logs of the processes in {logs}")
    with (
        running_bus(options) as bus,
        running_stack(app, logs, options.strategy, disordered=options.disordered, bus=bus) as stack,
        running_console(stack, story, wanted=options.ui),
    ):
        with progress_bar(story.console, len(deliveries)) as update:
            stack.start_hosts(options.hosts)
            progress = await play(stack, options, deliveries, update)
        stack.stop_hosts()
        injected = trouble.count(stack)
        used = [total for total in stack.cosmos.totals() if total.database == DATABASE]
        stack.cosmos.clear_faults()
        evidence = await gather(stack, progress.answers)
        report = Report(
            options=options,
            deliveries=len(deliveries),
            progress=progress,
            injected=injected,
            evidence=evidence,
            findings=judge(shots, evidence),
            requests=sum(total.requests for total in used),
            charge=sum(total.charge for total in used),
            seconds=story.seconds,
        )
        show_game(story, report)
        if options.strategy == "outbox":
            story.act("Messages come one at a time, and nothing goes wrong. What does each cost?")
            report = replace(report, costs=await costs.measure(stack))
            story.console.print(costs_table(report.costs))
        stack.cosmos.set_lag(DATABASE)
        steps = shown if options.spark_lines else story.steps
        scene = Scene(stack.cosmos, options.strategy, kept, began, steps)
        report = replace(report, acts=await asyncio.to_thread(play_acts, options, scene, story))
        if options.strategy == "outbox":
            story.act("Three weeks pass, and then a year. Copies come of a shot, to processes that remember nothing.")
            late = await a_year_later(stack)
            show_late(story, late)
            report = replace(report, late=late)
    return report


def play_acts(options: Options, scene: Scene, story: Story) -> tuple[Act, ...]:
    """The acts of Spark; none where there is nothing to audit, or no Spark."""
    if options.strategy == "naive" or not options.audit:
        return ()
    if reason := unavailable():
        story.tell(reason)
        return ()
    acts = []
    for title, play_act in ACTS.items():
        story.act(title)
        acts.append(play_act(scene))
        show_act(story, acts[-1])
    return tuple(acts)


def verdict(report: Report) -> str | None:
    """What is wrong with this demo; None if it shows what it should."""
    # Batches share commits, so that there are fewer to go wrong.
    least = report.options.shots // (50 if report.options.batches else 10)
    if report.options.faults and (
        min(report.injected.lost_after, report.injected.lost_before) < least
        or report.progress.kills < len(trouble.KILLS)
        or (report.options.disordered and not report.progress.gaps)
        or (report.options.transport == "servicebus" and not report.injected.at_the_broker)
    ):
        return "Too little trouble happened to show anything; fire more shots, or another SEED."
    if report.options.strategy == "naive":
        return (
            None
            if report.findings or not report.options.faults
            else "The naive handler got away with it; fire more shots."
        )
    if report.findings:
        return f"{len(report.findings)} violations of exactly-once processing."
    if dear := [cost for cost in report.costs if cost.operations > cost.limit]:
        return (
            f"{dear[0].messages}, {dear[0].kind}: {dear[0].operations:.2f} operations, {dear[0].limit:g} are allowed."
        )
    if report.late is not None and report.late.problem:
        return report.late.problem
    return next((act.problem for act in report.acts if act.problem), None)


def main() -> int:
    """Run the demo; the exit code is 0 if it shows what it should."""
    options = parse()
    silence_health_checks()
    story = Story(Console())
    logs = Path(tempfile.mkdtemp(prefix="exactlyonce-demo-"))
    kept = Path(tempfile.mkdtemp(prefix="exactlyonce-audit-"))
    try:
        report = asyncio.run(demonstrate(options, story, logs, kept))
    except KeyboardInterrupt:
        story.tell("Stopped; nothing is left running.")
        shutil.rmtree(logs)
        shutil.rmtree(kept)
        return 130
    if not report.acts:
        shutil.rmtree(kept)
    if problem := verdict(report):
        story.tell(f"[bold red]{problem}[/] Logs are in {logs}.")
        return 1
    shutil.rmtree(logs)
    for line in NEXT_AFTER_NAIVE if options.strategy == "naive" else NEXT:
        story.add(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
