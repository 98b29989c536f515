"""The chart of docs/performance.md, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 900, 495
TOP, BOTTOM = 60, 360
"""Of the plots."""

PANELS: Final = (("first", "A new message", 70), ("duplicate of the oldest", "A duplicate of the oldest message", 510))
"""Kind of message, title, left edge."""
PANEL_WIDTH: Final = 350
X_LIMITS: Final = (10, 100_000)
Y_LIMITS: Final = (1, 3_000)
COLOURS: Final = ("#0072b2", "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#000000")
"""Okabe and Ito's, which colour-blind readers can distinguish."""

DASHES: Final = ("none", "none", "5 5", "none", "5 5", "none", "2 4")
"""So that lines on one another both show."""

LEGEND_COLUMNS: Final = 3
_TEXT: Final = 'font-family="sans-serif" fill="#333"'


@dataclass(frozen=True, slots=True)
class _Scale:
    """From a value to a coordinate, logarithmically."""

    limits: tuple[float, float]
    edges: tuple[float, float]

    def __call__(self, value: float) -> float:
        low, high = (log10(limit) for limit in self.limits)
        return self.edges[0] + (log10(value) - low) / (high - low) * (self.edges[1] - self.edges[0])

    @property
    def ticks(self) -> Iterator[int]:
        """Powers of ten within the limits."""
        tick = 1
        while tick <= self.limits[1]:
            if tick >= self.limits[0]:
                yield tick
            tick *= 10


def growth_chart(result: Mapping[str, Any]) -> str:
    """Request units per message over the history of its entity."""
    names = list(result["strategies"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>Request units per message, by how many messages its entity processed before</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(WIDTH / 2, 24, "Request units per message, by how many messages its entity processed before", 16),
    ]
    for kind, title, left in PANELS:
        x, y = _Scale(X_LIMITS, (left, left + PANEL_WIDTH)), _Scale(Y_LIMITS, (BOTTOM, TOP))
        parts += _axes(title, x, y)
        for number, name in enumerate(names):
            after = result["strategies"][name]["after"]
            points = [
                (x(int(messages)), y(max(cost[kind]["request units"], Y_LIMITS[0]))) for messages, cost in after.items()
            ]
            parts += line(points, number)
    parts += _legend(names)
    return "\n".join([*parts, "</svg>", ""])


def _axes(title: str, x: _Scale, y: _Scale) -> Iterator[str]:
    yield text(sum(x.edges) / 2, TOP - 12, title, 14)
    for tick in y.ticks:
        yield f'<path d="M{x.edges[0]} {y(tick):.1f}H{x.edges[1]}" stroke="#ddd"/>'
        yield text(x.edges[0] - 8, y(tick) + 4, f"{tick:,}", 12, "end")
    for tick in x.ticks:
        yield f'<path d="M{x(tick):.1f} {BOTTOM}v5" stroke="#333"/>'
        yield text(x(tick), BOTTOM + 20, f"{tick:,}", 12)
    yield f'<path d="M{x.edges[0]} {BOTTOM}H{x.edges[1]}" stroke="#333"/>'
    yield text(sum(x.edges) / 2, BOTTOM + 40, "messages before", 12)


def line(points: Sequence[tuple[float, float]], number: int) -> Iterator[str]:
    """The line of this number, with its marks."""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    stroke = f'fill="none" stroke="{COLOURS[number]}" stroke-width="2"'
    yield f'<path d="M{path}" stroke-dasharray="{DASHES[number]}" {stroke}/>'
    yield from (f'<path d="{MARKERS[number](round(x, 1), round(y, 1))}" {stroke}/>' for x, y in points)


def _legend(names: list[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        row, column = divmod(number, LEGEND_COLUMNS)
        x, y = 70 + column * 280, BOTTOM + 72 + row * 24
        yield from line([(x, y), (x + 30, y)], number)
        yield text(x + 46, y + 4, name, 13, "start")


def text(x: float, y: float, text: str, size: int, anchor: str = "middle") -> str:
    """A text, where its middle, start or end is to be."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" {_TEXT}>{escape(text)}</text>'


def _circle(x: float, y: float) -> str:
    return f"M{x - 8} {y}a8 8 0 1 0 16 0a8 8 0 1 0 -16 0"


def _square(x: float, y: float) -> str:
    return f"M{x - 4} {y - 4}h8v8h-8z"


def _triangle(x: float, y: float) -> str:
    return f"M{x} {y - 6}l6 10h-12z"


def _upside_down(x: float, y: float) -> str:
    return f"M{x} {y + 6}l6 -10h-12z"


def _diamond(x: float, y: float) -> str:
    return f"M{x} {y - 8}l8 8l-8 8l-8 -8z"


def _cross(x: float, y: float) -> str:
    return f"M{x - 4} {y - 4}l8 8m0 -8l-8 8"


def _plus(x: float, y: float) -> str:
    return f"M{x - 6} {y}h12M{x} {y - 6}v12"


MARKERS: Final = (_square, _circle, _triangle, _diamond, _cross, _upside_down, _plus)
"""Of different sizes, so that those of lines that lie on one another show."""
