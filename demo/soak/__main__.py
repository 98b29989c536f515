"""`python -m demo.soak`: the exit code is 0 if nothing was violated."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from demo.options import Transport
from demo.soak.page import write_page
from demo.soak.soaking import Soak, Soaked, soaked
from demo.stack import ROOT


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser("python -m demo.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="half of them on each transport (%(default)g)")
    parser.add_argument("--rate", type=float, default=Soak.rate, help="shots a second (%(default)g)")
    parser.add_argument("--seed", type=int, default=Soak.seed, help="%(default)s")
    parser.add_argument("--no-jobs", action="store_true", help="neither audits nor clean-ups")
    parser.add_argument("--job-pause", type=float, default=Soak.job_pause, help="seconds between jobs (%(default)g)")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "soak.md", help="%(default)s")
    parser.add_argument(
        "--at-once", action="store_true", help="both transports at the same time, in half of the minutes"
    )
    given = parser.parse_args()
    runs = asyncio.run(_soaks(given, Path(tempfile.mkdtemp(prefix="exactlyonce-soak-"))))
    write_page(runs, given.page, os.cpu_count() or 1, at_once=given.at_once)
    return 1 if any(run.violations for run in runs) else 0


async def _soaks(given: argparse.Namespace, folder: Path) -> list[Soaked]:
    transports: tuple[Transport, ...] = ("storage", "servicebus")
    soaks = [_soak(given, transport, folder) for transport in transports]
    return list(await asyncio.gather(*soaks)) if given.at_once else [await soak for soak in soaks]


async def _soak(given: argparse.Namespace, transport: Transport, folder: Path) -> Soaked:
    logs = folder / transport
    logs.mkdir()
    print(f"{transport}: logs in {logs}", flush=True)
    soak = Soak(
        transport, given.minutes * 30, given.rate, not given.no_jobs, job_pause=given.job_pause, seed=given.seed
    )
    done = await soaked(soak, logs, lambda text: print(f"{transport}: {text}", flush=True))
    print(f"{transport}: {done.shots} shots, {done.violations} violations", flush=True)
    for problem in (*done.failures, *map(str, done.findings)):
        print(problem)
    return done


if __name__ == "__main__":
    sys.exit(main())
