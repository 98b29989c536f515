"""Tables of docs/performance.md, written between its marks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cpu_tables import cpu_tables
from benchmarks.tables import cost_tables, library_table, throughput_tables

THROUGHPUT_CHART = """
![Messages per second by the latency of a request: one hot entity shows how messages share a commit](throughput.svg)
"""
BEGIN = "<!-- written by `python -m benchmarks.growth`: do not edit -->"
END = "<!-- end of what is written -->"


def require_place(page: Path, benchmark: str = "growth") -> None:
    """Raise `ValueError` if the page has no place for the table of a benchmark."""
    if not _place(benchmark).search(page.read_text(encoding="utf-8")):
        raise ValueError(f"{page} has no place for the table: a line {_begin(benchmark)!r} and a line {END!r}.")


def write_growth(page: Path, result: Mapping[str, Any]) -> None:
    """Put the table of a result in place of the one that is there. Raises as `require_place` does."""
    _write(page, "growth", _growth(result))


def write_audit(page: Path, result: Mapping[str, Any]) -> None:
    """The same for how long audits take."""
    _write(page, "spark", _audit(result))


def write_cost(page: Path, result: Mapping[str, Any]) -> None:
    """The same for what a message costs, beside what a user would pick instead."""
    _write(page, "cost", cost_tables(result) + told_of(result, "cost"))


def write_throughput(page: Path, result: Mapping[str, Any]) -> None:
    """The same for how fast messages are processed."""
    _write(page, "throughput", THROUGHPUT_CHART + throughput_tables(result) + told_of(result, "throughput"))


def write_cpu(page: Path, result: Mapping[str, Any]) -> None:
    """The same for the CPU time that the library takes."""
    _write(page, "cpu", cpu_tables(result) + told_of(result, "cpu"))


def write_sessions(page: Path, result: Mapping[str, Any], table: str) -> None:
    """The same for what sessions of Service Bus change."""
    _write(page, "sessions", f"\n{table}\n{told_of(result, 'sessions')}")


def _write(page: Path, benchmark: str, table: str) -> None:
    require_place(page, benchmark)
    written = f"{_begin(benchmark)}\n{table}\n{END}"
    page.write_text(_place(benchmark).sub(lambda _: written, page.read_text(encoding="utf-8")), encoding="utf-8")


def _begin(benchmark: str) -> str:
    return BEGIN.replace("growth", benchmark)


def _place(benchmark: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(_begin(benchmark))}.*?{re.escape(END)}", re.DOTALL)


def _audit(result: Mapping[str, Any]) -> str:
    rows = ["| records | a full audit | what changed: 1 % |", "| ---: | ---: | ---: |"]
    for records, seconds in result["audits"].items():
        rows.append(f"| {int(records):,} | {seconds['full']:.1f} s | {seconds['incremental']:.1f} s |")
    return "\n".join(["", *rows, "", f"{_measured(result)}; figures are in `benchmarks/results/spark.json`.", ""])


def told_of(result: Mapping[str, Any], benchmark: str) -> str:
    """Where figures are from, and where all of them are."""
    return f"\n{_measured(result)}; all figures are in `benchmarks/results/{benchmark}.json`.\n"


def _measured(result: Mapping[str, Any]) -> str:
    machine = result["machine"]
    return f"Measured on {machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, {machine['date']}"


def _growth(result: Mapping[str, Any]) -> str:
    rows = [
        "| strategy | messages before | a new message | a duplicate of the newest | a duplicate of the oldest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, measured in result["strategies"].items():
        for messages, cost in measured["after"].items():
            cells = [f"`{name}`" if name else "", f"{int(messages):,}", *(_told(one) for one in cost.values())]
            rows.append(f"| {' | '.join(cells)} |")
            name = ""  # noqa: PLW2901  # Once is enough.
    return "\n".join(["", *rows, ""]) + library_table(result["library"]) + told_of(result, "growth")


def _told(cost: Mapping[str, float]) -> str:
    requests = f"{cost['requests']:.2f}".rstrip("0").rstrip(".")
    return f"{requests} {'request' if requests == '1' else 'requests'}, {cost['request units']:,.1f} RU"
