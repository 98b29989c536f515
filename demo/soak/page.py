"""The page of a soak: what was done, what was found, and pictures of memory, backlog, latency and conflicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from statistics import mean, quantiles
from typing import Final

from demo.soak.measures import Sample
from demo.soak.soaking import HOSTS, Soaked

_MIB: Final = 2**20
_POINTS: Final = 90
"""Of a line of the picture, at most: more cannot be told apart at its width."""
_TEXT: Final = """\
# Soak

`make soak MINUTES={minutes:g}` runs {hosts} hosts of the sample, half of the time on storage queues and half on Service
Bus{at_once}. Meanwhile hosts are killed, the store throttles four of ten requests or loses one of seven replies for some
seconds, and partitions split{jobs}.
Afterwards the judge of `make demo` replays every shot. The last run wrote this page, on {cores} cores.

| | {heads}
| --- |{columns}
{rows}

A violation is anything forbidden by the guarantee, a message parked or left over, and a job with a finding or a failure. Memory
is of a host that is never killed. Latency is from the sending of a shot to its commit, with the waits for a throttled store and
for messages of killed hosts.

![Memory of a host, messages that wait, latency of shots, and conflicts over time, on both transports](soak.svg)
"""

_JOBS: Final = """; Spark audits and cleans up, one after the other, with pauses of {pause:g} seconds. Records become old after
a month, so the clean-ups visit everything and delete no record"""


def write_page(runs: Sequence[Soaked], page: Path, cores: int, *, at_once: bool = False) -> None:
    """Write the page, and its picture next to it.

    Args:
        runs: one for each transport.
        page: file to write.
        cores: of this machine.
        at_once: whether both ran at the same time.
    """
    table = {
        "minutes": [f"{run.soak.seconds / 60:g}" for run in runs],
        "shots; messages, with those sent twice": [f"{run.shots:,}; {run.copies:,}" for run in runs],
        "**violations**": [f"**{run.violations}**" for run in runs],
        "hosts killed": [f"{run.kills}" for run in runs],
        "spells of throttling, of lost replies; splits": [
            f"{run.throttlings}, {run.losses}; {run.splits}" for run in runs
        ],
        "audits, clean-ups meanwhile": [f"{run.audits}, {run.clean_ups}" for run in runs],
        "latency, p50, p95, p99": [_latencies(run.latencies) for run in runs],
        "memory of a host, second quarter to last": [_memory(run) for run in runs],
        "most messages that waited": [f"{max(sample.backlog for sample in run.samples):,}" for run in runs],
        "requests; conflicts; throttled": [_requests(run) for run in runs],
    }
    text = _TEXT.format(
        minutes=sum(run.soak.seconds for run in runs) / 60,
        hosts=HOSTS,
        at_once=", both at the same time" if at_once else "",
        jobs=_JOBS.format(pause=runs[0].soak.job_pause) if runs[0].soak.jobs else "",
        cores=cores,
        heads=" | ".join(map(_name, runs)) + " |",
        columns=" --- |" * len(runs),
        rows="\n".join(f"| {name} | {' | '.join(values)} |" for name, values in table.items()),
    )
    page.write_text(text, encoding="utf-8")
    page.with_suffix(".svg").write_text(_picture(runs), encoding="utf-8")


def _name(run: Soaked) -> str:
    return {"storage": "storage queues", "servicebus": "Service Bus"}[run.soak.transport]


def _latencies(seconds: Sequence[float]) -> str:
    cuts = quantiles(seconds, n=100)
    return ", ".join(f"{cuts[place - 1]:.2f} s" for place in (50, 95, 99))


def _memory(run: Soaked) -> str:
    return f"{quarter(run, 1) / _MIB:.0f} to {quarter(run, 3) / _MIB:.0f} MiB"


def quarter(run: Soaked, number: int) -> float:
    """The mean memory, in bytes, in a quarter of a soak, counted from 0. The first one includes the start."""
    part = max(1, len(run.samples) // 4)
    return mean(sample.memory for sample in run.samples[number * part : (number + 1) * part])


def _requests(run: Soaked) -> str:
    return "; ".join(
        f"{sum(getattr(sample, name) for sample in run.samples):,}" for name in ("requests", "conflicts", "throttled")
    )


def _picture(runs: Sequence[Soaked]) -> str:
    from matplotlib import rc_context  # noqa: PLC0415  # It takes a second to load.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 6), layout="constrained")
    (memory, backlog), (latency, conflicts) = figure.subplots(2, 2)
    for run in runs:
        parts = list(_parts(run.samples))
        minutes = [part[-1].second / 60 for part in parts]
        memory.plot(minutes, [max(item.memory for item in part) / _MIB for part in parts], label=_name(run))
        backlog.plot(minutes, [max(item.backlog for item in part) for part in parts])
        conflicts.plot(minutes, [sum(item.conflicts for item in part) for part in parts])
        latency.plot(quantiles(run.latencies, n=_POINTS + 1), [place / _POINTS for place in range(_POINTS)])
    memory.set(title="Memory of a host, MiB", xlabel="minutes", ylim=(0, None))
    backlog.set(title="Messages that wait", xlabel="minutes", ylim=(0, None))
    latency.set(title="Share of shots within seconds", xlabel="seconds", xscale="log", ylim=(0, 1))
    seconds = sum(run.soak.seconds / len(list(_parts(run.samples))) for run in runs) / len(runs)
    conflicts.set(title=f"Conflicts in {seconds:.0f} seconds", xlabel="minutes", ylim=(0, None))
    memory.legend()
    written = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "soak"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return _compact(written.getvalue())


def _compact(picture: str) -> str:
    """The same picture with one decimal, and the points of a line in one line of text."""
    shorter = re.sub(r"(?<=[MLQC ])(-?\d+\.\d)\d+", r"\1", picture)
    joined = re.sub(r"\s*\n(?=[MLQCz\"]|\s*/>)", " ", shorter)
    nested = re.sub(r">\n *(?=</(?:g|defs|clipPath)>|<(?:use|path|defs|g)\b)", ">", joined)
    return "\n".join(line.rstrip() for line in nested.splitlines()) + "\n"


def _parts(samples: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    """Samples in at most `_POINTS` runs of one length, so that a long soak has no larger picture than a short one."""
    length = -(-len(samples) // _POINTS)
    return (samples[start : start + length] for start in range(0, len(samples), length))
