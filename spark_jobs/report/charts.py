"""Charts as SVG for the page: text stays text, in the colours of the page, light or dark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta, timezone
from io import StringIO
from itertools import accumulate
from typing import Any, Final

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from spark_jobs.report.contents import Growing, Pictures, RuleResult, Trend

INCHES: Final = (4.3, 2.4)
"""Small enough that the letters can be read on a telephone, where the chart is as wide as the screen."""
INK, MUTED, LINE, BAD = "#000001", "#000002", "#000003", "#000004"
SERIES: Final = ("#000011", "#000012", "#000013", "#000014", "#000015")
"""Colours that stand for the page's own, which differ between light and dark."""
_VARIABLES: Final = {
    INK: "ink",
    MUTED: "muted",
    LINE: "line",
    BAD: "bad",
    **{colour: f"series-{number}" for number, colour in enumerate(SERIES, start=1)},
}
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.size": 9.5,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.grid.axis": "y",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "figure.facecolor": "none",
    "grid.color": LINE,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "ytick.major.size": 0,
}


def backlog_chart(pictures: Pictures) -> Markup | None:
    """Commits that owe outputs, by age. None if nothing is owed."""
    if not any(number for _, number in pictures.backlog):
        return None
    with _chart("Commits that owe outputs, by age") as (axes, finished):
        axes.grid(visible=False)
        axes.yaxis.set_visible(False)
        names, numbers = zip(*pictures.backlog, strict=True)
        drawn = axes.bar(names, numbers, color=SERIES[0], width=0.7)
        axes.bar_label(drawn, labels=[f"{number:,}" for number in numbers], padding=2, color=INK)
        axes.margins(y=0.15)
    return finished[0]


def kinds_chart(rules: tuple[RuleResult, ...]) -> Markup | None:
    """Findings by rule. None if there are none."""
    found = tuple((rule.name, rule.findings) for rule in reversed(rules) if rule.findings)
    if not found:
        return None
    with _chart("Findings by rule", (5, 0.5 + 0.28 * len(found))) as (axes, finished):
        axes.grid(visible=False)
        axes.xaxis.set_visible(False)
        axes.spines.bottom.set_visible(False)
        drawn = axes.barh([name for name, _ in found], [number for _, number in found], color=BAD, height=0.62)
        axes.bar_label(drawn, labels=[f"{number:,}" for _, number in found], padding=4, color=INK)
        axes.tick_params(axis="y", colors=INK)
        axes.margins(x=0.12)
    return finished[0]


def commits_chart(pictures: Pictures) -> Markup | None:
    """Processed messages over time. None if there are none."""
    if not pictures.commits:
        return None
    with _chart(f"Messages processed per {span_name(pictures.span)}, of those still known") as (axes, finished):
        begins: Any = [when for when, _ in pictures.commits]
        heights = [number for _, number in pictures.commits]
        width: Any = timedelta(seconds=pictures.span)
        axes.bar(begins, heights, width=width, align="edge", color=SERIES[0])
        _over_time(axes)
    return finished[0]


def growth_chart(pictures: Pictures) -> Markup | None:
    """Documents and entries kept to detect duplicates, by the time of writing. None if there are none."""
    kinds = growing_kinds(pictures)
    if not kinds:
        return None
    times, heights = _cumulated(kinds, pictures.span)
    with _chart("Kept to detect duplicates, by time of writing") as (axes, finished):
        axes.stackplot(times, *heights, colors=SERIES[: len(kinds)], linewidth=0, step="pre")
        _over_time(axes)
    return finished[0]


def trend_chart(trend: Trend) -> Markup | None:
    """Findings of the last audits; those of full audits are marked. None where there was no earlier audit."""
    if len(trend) < 2:  # noqa: PLR2004  # A line has two ends.
        return None
    with _chart("Findings of the last audits; a dot is a full audit") as (axes, finished):
        begins: Any = [at for at, _, _ in trend]
        axes.plot(begins, [number for _, _, number in trend], color=BAD, linewidth=1.5)
        full: Any = [(at, number) for at, mode, number in trend if mode == "full"]
        axes.plot([at for at, _ in full], [number for _, number in full], "o", color=BAD, markersize=5, clip_on=False)
        _over_time(axes)
    return finished[0]


def growing_kinds(pictures: Pictures) -> dict[str, Growing]:
    """The kinds that `growth_chart` shows, from below; the n-th has the page's n-th colour."""
    return {kind: growing for kind, growing in (pictures.growth or {}).items() if growing}


def span_name(seconds: int) -> str:
    """Name of a span of time."""
    names = {1: "second", 60: "minute", 600: "10 minutes", 3600: "hour", 86_400: "day", 604_800: "week"}
    return names.get(seconds, f"{seconds:,} seconds")


def _cumulated(kinds: Mapping[str, Growing], span: int) -> tuple[Any, list[list[int]]]:
    """Beginnings of the spans with writes, and the end of the last; for each kind the number written until then."""
    begins = sorted({when for growing in kinds.values() for when, _ in growing})
    written = [dict(growing) for growing in kinds.values()]
    heights = [list(accumulate((item.get(begin, 0) for begin in begins), initial=0)) for item in written]
    return [*begins, begins[-1] + timedelta(seconds=span)], heights


def _over_time(axes: Axes) -> None:
    """Dates below, whole numbers from zero on the left."""
    # Fewer than 7 leave gaps between the intervals of two units, in which matplotlib warns.
    locator = AutoDateLocator(tz=timezone.utc, minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=timezone.utc))  # type: ignore[no-untyped-call]
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylim(bottom=0)
    axes.margins(x=0)


@contextmanager
def _chart(title: str, size: tuple[float, float] = INCHES) -> Iterator[tuple[Axes, list[Markup]]]:
    """Axes to draw on; afterwards the list holds the SVG, with its title for screen readers."""
    finished: list[Markup] = []
    with mpl.rc_context({**_STYLE, "svg.hashsalt": title}):  # The salt keeps ids of two charts on one page apart.
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        yield axes, finished
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    finished.append(_for_page(written.getvalue(), title))


def _for_page(svg: str, title: str) -> Markup:
    """The element alone, as wide as its place, in the page's colours and letters."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[a-zA-Z0-9]+_\d+"', "", svg)  # Counted anew in each chart, so not unique on the page.
    svg = re.sub(r"(font: [0-9.]+px) [^;\"]+", r"\1 inherit", svg)
    svg = re.sub(r"font: ([0-9.]+px) inherit", r"font-size: \1", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    box = re.search(r'viewBox="[^"]+"', svg)
    assert box is not None  # noqa: S101  # matplotlib writes one.
    inside = svg[svg.index(">") + 1 :]
    return Markup(  # noqa: S704  # matplotlib escapes what it writes.
        f'<svg {box[0]} role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>{inside}'
    )
