"""The page of a soak says what was measured, and counts everything that is wrong."""

from __future__ import annotations

from pathlib import Path

from demo.oracle import Finding
from demo.soak.measures import Sample
from demo.soak.page import quarter, write_page
from demo.soak.soaking import Soak, Soaked

MIB = 2**20


def run(transport: str = "storage", **given: object) -> Soaked:
    """A soak of a minute."""
    samples = tuple(Sample(5.0 * n, (100 + 10 * (n < 3)) * MIB, n % 4, 100, 2, 1 if n == 5 else 0) for n in range(12))
    latencies = tuple(0.01 * n for n in range(1, 200))
    soak = Soak(transport, 60.0)  # type: ignore[arg-type]
    return Soaked(soak, 240, 290, 3, 1, 2, 1, samples=samples, latencies=latencies, **given)  # type: ignore[arg-type]


def test_everything_that_is_wrong_is_a_violation() -> None:
    assert run().violations == 0
    wrong = run(left=2, parked=1, failures=["audit: exit 1"], findings=(Finding("lost", "game-1", "shot-1"),))
    assert wrong.violations == 5


def test_the_page_has_a_column_for_each_transport_and_a_picture(tmp_path: Path) -> None:
    write_page([run(), run("servicebus", parked=1)], tmp_path / "soak.md", 2)
    text = (tmp_path / "soak.md").read_text()
    assert "`make soak MINUTES=2`" in text
    assert "| | storage queues | Service Bus |\n| --- | --- | --- |\n" in text
    assert "| **violations** | **0** | **1** |" in text
    assert "| latency, p50, p95, p99 | 1.00 s, 1.90 s, 1.98 s | 1.00 s, 1.90 s, 1.98 s |" in text
    assert "| requests; conflicts; throttled | 1,200; 24; 1 | 1,200; 24; 1 |" in text
    assert "{" not in text
    picture = (tmp_path / "soak.svg").read_text()
    assert picture.startswith("<?xml")
    assert "Date" not in picture


def test_memory_is_compared_after_the_start() -> None:
    assert (quarter(run(), 0), quarter(run(), 1), quarter(run(), 3)) == (110 * MIB, 100 * MIB, 100 * MIB)
