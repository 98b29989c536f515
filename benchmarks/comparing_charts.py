"""Charts of docs/performance.md that compare the library with what a user would pick instead, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import Any, Final

from benchmarks.charts import COLOURS, line, text

WIDTH: Final = 900
BAR, GAP, LABEL, LENGTH = 16, 26, 230, 250
"""Height of a bar, from one to the next, width of its label, and length of the longest."""

SITUATIONS: Final = (("many entities", "Many entities"), ("hot entity", "One hot entity, 64 in flight"))
PANEL: Final = 230
TOP, BOTTOM = 70, 330
"""Of the plots of speeds."""

SPEEDS: Final = (1, 10_000)
TITLES: Final = {"uniform": "200 entities, uniform", "zipf": "200 entities, Zipf", "hot": "one hot entity"}


def cost_chart(result: Mapping[str, Any]) -> str:
    """Request units per message, on many entities and on one."""
    contenders = result["contenders"]
    height = 80 + GAP * len(contenders)
    most = max(one[situation]["request units"] for one in contenders.values() for situation, _ in SITUATIONS)
    parts = [*_frame(height, "Request units per message: what the store asks for it")]
    lefts = [LABEL + column * (LENGTH + 80) for column in range(len(SITUATIONS))]
    parts += [text(x, 54, title, 14, "start") for x, (_, title) in zip(lefts, SITUATIONS, strict=True)]
    for row, (name, measured) in enumerate(contenders.items()):
        y = 70 + row * GAP
        parts.append(text(LABEL - 12, y + 12, name, 13, "end"))
        for x, colour, (situation, _) in zip(lefts, COLOURS, SITUATIONS, strict=False):
            units = measured[situation]["request units"]
            length = LENGTH * units / most
            parts.append(f'<rect x="{x}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
            parts.append(text(x + length + 6, y + 12, f"{units:.1f}", 12, "start"))
    return "\n".join([*parts, "</svg>", ""])


def throughput_chart(
    result: Mapping[str, Any], names: Sequence[str], latencies: Sequence[float], in_flight: int
) -> str:
    """Messages per second by the latency of the store, for each workload."""
    title = f"Messages per second by latency of a request, {in_flight} in flight"
    parts = [*_frame(BOTTOM + 100, title)]
    for panel, (workload, told) in enumerate(TITLES.items()):
        left = 70 + panel * (PANEL + 50)
        parts += _axes(left, told, latencies)
        for number, name in enumerate(names):
            speeds = [
                result["loads"][f"{workload}, {in_flight} in flight, {latency:g} ms"][name]["messages/s"]
                for latency in latencies
            ]
            parts += line([(_x(left, place, latencies), _y(speed)) for place, speed in enumerate(speeds)], number)
    for number, name in enumerate(names):
        x = 70 + number * 205
        parts += line([(x, BOTTOM + 76), (x + 30, BOTTOM + 76)], number)
        parts.append(text(x + 44, BOTTOM + 80, name, 13, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _frame(height: int, title: str) -> Iterator[str]:
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
    yield f"<title>{title}</title>"
    yield f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    yield text(WIDTH / 2, 24, title, 16)


def _axes(left: float, title: str, latencies: Sequence[float]) -> Iterator[str]:
    yield text(left + PANEL / 2, TOP - 14, title, 14)
    for power in range(5):
        y = _y(10**power)
        yield f'<path d="M{left} {y:.1f}h{PANEL}" stroke="#ddd"/>'
        yield text(left - 6, y + 4, f"{10**power:,}", 12, "end")
    for place, latency in enumerate(latencies):
        yield text(_x(left, place, latencies), BOTTOM + 20, f"{latency:g} ms", 12)
    yield f'<path d="M{left} {BOTTOM}h{PANEL}" stroke="#333"/>'


def _x(left: float, place: int, latencies: Sequence[float]) -> float:
    """The latencies are set side by side: they are those that were measured, not a scale."""
    return left + 24 + place * (PANEL - 48) / (len(latencies) - 1)


def _y(speed: float) -> float:
    low, high = (log10(limit) for limit in SPEEDS)
    return BOTTOM - (log10(max(speed, SPEEDS[0])) - low) / (high - low) * (BOTTOM - TOP)
