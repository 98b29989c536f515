"""Where the figures of a benchmark go: a result with a row a line, and tables between the marks of a page."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results"
README: Final = ROOT / "README.md"
PERFORMANCE: Final = ROOT / "docs" / "performance.md"
END: Final = "<!-- end of what is written -->"
_WIDTH: Final = 240
"""Longest row of a result."""


def parser(benchmark: str, description: str | None, page: Path | None = PERFORMANCE) -> ArgumentParser:
    """The command line of a benchmark, with `--output` and `--page`; None for one that writes no page."""
    made = ArgumentParser(prog=f"python -m benchmarks.{benchmark}", description=description)
    made.add_argument("--output", type=Path, default=RESULTS / f"{benchmark}.json", help="default: %(default)s")
    if page is not None:
        made.add_argument("--page", type=Path, default=page, help="default: %(default)s")
    return made


def parsed(made: ArgumentParser, benchmark: str) -> Namespace:
    """The options. Raises `ValueError` if the page has no place for tables: before anything is measured."""
    options = made.parse_args()
    _place(options.page.read_text(encoding="utf-8"), benchmark)
    return options


def machine() -> dict[str, object]:
    """What a measurement was made on, so that nobody compares figures of different machines."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
    }


def measured_on(result: Mapping[str, Any]) -> str:
    """The machine of a result, as the beginning of a sentence."""
    on = result["machine"]
    return f"Measured on {on['cores']} cores ({on['cpu']}), Python {on['python']}, {on['date']}"


def write_result(output: Path, result: Mapping[str, Any]) -> None:
    """Write a result as JSON, with all on one line that is no longer than a row."""
    output.parent.mkdir(exist_ok=True)
    output.write_text(_rows(result, "") + "\n", encoding="utf-8")


def write_section(page: Path, benchmark: str, section: str) -> None:
    """Put tables in place of those between the marks of a benchmark. Raises `ValueError` if the page has no such place."""
    before, after = _place(page.read_text(encoding="utf-8"), benchmark)
    page.write_text(f"{before}\n{section}\n{after}", encoding="utf-8")


def section_of(page: Path, benchmark: str) -> str:
    """What stands between the marks of a benchmark. Raises as `write_section` does."""
    text = page.read_text(encoding="utf-8")
    before, after = _place(text, benchmark)
    return text[len(before) + 1 : -len(after) - 1]


def exit_code(missed: Iterable[str]) -> int:
    """Print a sentence for each target that is missed; 1 if there is one."""
    sentences = list(missed)
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


def _rows(value: Any, indent: str) -> str:
    text = json.dumps(value)
    if not isinstance(value, dict) or len(indent) + len(text) <= _WIDTH:
        return text
    inner = indent + "  "
    rows = (f"{inner}{json.dumps(key)}: {_rows(item, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def _place(text: str, benchmark: str) -> tuple[str, str]:
    """What stands before tables, with the mark, and after them."""
    begin = f"<!-- written by `python -m benchmarks.{benchmark}`: do not edit -->"
    found = re.fullmatch(f"(.*{re.escape(begin)}).*?({re.escape(END)}.*)", text, re.DOTALL)
    if found is None:
        raise ValueError(f"The page has no place for the tables: a line {begin!r} and a line {END!r}.")
    return found[1], found[2]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
