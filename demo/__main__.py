"""`python -m demo`: play a game under trouble, judge it, say what it cost."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from rich.console import Console

from demo import costs, trouble
from demo.auditing import ACTS, Act, Scene, unavailable
from demo.bus import running_bus
from demo.display import Report, progress_bar, show
from demo.late import a_year_later
from demo.options import Options, parse
from demo.oracle import judge
from demo.play import gather, play
from demo.shots import plan_deliveries, plan_shots
from demo.stack import DATABASE, ROOT, running_stack


async def demonstrate(options: Options, console: Console, logs: Path, kept: Path) -> Report:
    """Everything between the first process and the verdict.

    Args:
        options: of the demo.
        console: shows progress.
        logs: folder of the processes' logs.
        kept: folder of the reports, which stay.
    """
    started, began = time.monotonic(), time.time()
    random = Random(options.seed)
    shots = plan_shots(options, random)
    deliveries = plan_deliveries(shots, options, random)
    app = ROOT / "demo" / "naive" if options.strategy == "naive" else ROOT
    console.print(
        f"[bold]{options.shots} shots[/] on {options.games} games, strategy {options.strategy}; logs in {logs}"
    )
    with (
        running_bus(options) as bus,
        running_stack(app, logs, options.strategy, disordered=options.disordered, bus=bus) as stack,
        progress_bar(console, len(deliveries)) as update,
    ):
        stack.start_hosts(options.hosts)
        progress = await play(stack, options, deliveries, update)
        stack.stop_hosts()
        injected = trouble.count(stack)
        used = [total for total in stack.cosmos.totals() if total.database == DATABASE]
        stack.cosmos.clear_faults()
        evidence = await gather(stack)
        measured = await costs.measure(stack) if options.strategy == "outbox" else []
        stack.cosmos.set_lag(DATABASE)
        scene = Scene(stack.cosmos, options.strategy, kept, began)
        acts = await asyncio.to_thread(play_acts, options, scene, console)
        late = await a_year_later(stack) if options.strategy == "outbox" else None
    findings = judge(shots, evidence)
    seconds = time.monotonic() - started
    return Report(
        options=options,
        deliveries=len(deliveries),
        progress=progress,
        injected=injected,
        evidence=evidence,
        findings=findings,
        costs=measured,
        requests=sum(total.requests for total in used),
        charge=sum(total.charge for total in used),
        seconds=seconds,
        acts=acts,
        late=late,
    )


def play_acts(options: Options, scene: Scene, console: Console) -> tuple[Act, ...]:
    """The acts after the game; none where there is nothing to audit, or no Spark."""
    if options.strategy == "naive" or not options.audit:
        return ()
    if reason := unavailable():
        console.print(reason)
        return ()
    return tuple(act(scene) for act in ACTS)


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
        return f"{dear[0].preset}, {dear[0].kind}: {dear[0].operations:.2f} operations, {dear[0].limit:g} are allowed."
    if report.late is not None and report.late.problem:
        return report.late.problem
    return next((act.problem for act in report.acts if act.problem), None)


def main() -> int:
    """Run the demo; the exit code is 0 if it shows what it should."""
    options = parse()
    console = Console()
    logs = Path(tempfile.mkdtemp(prefix="exactlyonce-demo-"))
    kept = Path(tempfile.mkdtemp(prefix="exactlyonce-audit-"))
    try:
        report = asyncio.run(demonstrate(options, console, logs, kept))
    except KeyboardInterrupt:
        console.print("Stopped; nothing is left running.")
        shutil.rmtree(logs)
        shutil.rmtree(kept)
        return 130
    if not report.acts:
        shutil.rmtree(kept)
    show(console, report)
    if problem := verdict(report):
        console.print(f"[bold red]{problem}[/] Logs are in {logs}.")
        return 1
    shutil.rmtree(logs)
    if options.strategy == "naive":
        console.print("[bold]This is what exactlyonce prevents: run `make demo` without STRATEGY=naive.[/]")
    else:
        console.print("[bold green]Every shot took place exactly once.[/]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
