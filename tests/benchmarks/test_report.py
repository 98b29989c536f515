"""Results are read as they were written, and the pages show those that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tables
from benchmarks.answers import answers_table
from benchmarks.charts import growth_chart
from benchmarks.peers.page import peers_table
from benchmarks.report import END, PERFORMANCE, README, RESULTS, ROOT, section_of, write_section

Tables = Callable[[Mapping[str, Any]], str]
PEERS = ROOT / "docs" / "peers.md"
HTTP = ROOT / "docs" / "http.md"


@pytest.mark.parametrize(
    ("page", "benchmark", "made"),
    [
        (PERFORMANCE, "cost", tables.cost_tables),
        (README, "cost", tables.headline_table),
        (PERFORMANCE, "throughput", tables.throughput_tables),
        (PERFORMANCE, "growth", tables.growth_tables),
        (PERFORMANCE, "spark", tables.spark_table),
        (PEERS, "peers", peers_table),
        (HTTP, "answers", answers_table),
    ],
    ids=["cost", "headline", "throughput", "growth", "spark", "peers", "answers"],
)
def test_the_tables_of_a_page_are_those_of_its_result(page: Path, benchmark: str, made: Tables) -> None:
    assert section_of(page, benchmark) == made(result_of(benchmark))


def test_the_chart_is_that_of_its_result() -> None:
    assert PERFORMANCE.with_name("growth.svg").read_text() == growth_chart(result_of("growth"))


def test_tables_take_the_place_of_those_before_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin = "<!-- written by `python -m benchmarks.cpu`: do not edit -->"
    page.write_text(f"Before\n{begin}\nstale\n{END}\nafter\n")
    for _ in range(2):
        write_section(page, "cpu", "fresh")
    assert page.read_text() == f"Before\n{begin}\nfresh\n{END}\nafter\n"
    assert section_of(page, "cpu") == "fresh"
    with pytest.raises(ValueError, match="no place for the tables"):
        write_section(page, "growth", "")


def result_of(benchmark: str) -> Any:
    return json.loads((RESULTS / f"{benchmark}.json").read_text())
