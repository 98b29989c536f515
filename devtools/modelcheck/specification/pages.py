"""Writes what was seen as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from devtools.modelcheck.specification.chapters import Chapter, Part
from devtools.modelcheck.specification.costs import Costing, counted
from devtools.modelcheck.specification.diagrams import diagram
from devtools.modelcheck.specification.driving import Driven, Seen
from devtools.modelcheck.specification.finishing import Finishes, who_finishes
from devtools.modelcheck.specification.places import Place
from devtools.modelcheck.specification.steps import Steps
from devtools.modelcheck.specification.text import listed, paragraph
from devtools.modelcheck.specification.vocabulary import FINISHERS, LEFTOVERS

NOTICE: Final = (
    "<!-- Generated from the code of the strategies by `python -m devtools.modelcheck.specification`. Do not edit. -->"
)
HOW_TO_READ: Final = """
Every step is one request, with every reply that it may get; the [index](README.md) tells what each reply may mean in reality.
Where several steps may follow, the first one whose condition holds does. **Finished** means that {finished}; **again** that
nothing is proved, and that whoever asked starts over from the first step or gives up until later. A **crash** at a step is one
after its request was sent and before its reply was acted upon; what it leaves is the difference to what was stored before the
attempt, and may come from an earlier step. Where none is told of, it leaves nothing.
"""
CAPTION: Final = "A request without an answer, which is not drawn, leads to *again*."
SKIPPED: Final = "Dashed steps are skipped where they do not apply."
COSTS: Final = """
Counted on the [local Cosmos DB](../local-cosmos.md), without trouble, for a small state and messages with one small output.
Request units (RU) are what it charges; they grow with the size of what is read and written. Requests side by side (+) are one
round trip. `Publish` goes to the queues and is not counted; what follows it does not delay them. What becomes of it as history
grows is in [performance](../performance.md).
"""
SMALLEST: Final = 3
"""Fewer steps of its own need no picture."""
FINISHED_BY: Final = """
Each attempt was left at each of its steps, and then others went on from there. Named is who always finished what was left.
"""

Parts = Sequence[tuple[Part, Driven]]


@cache
def driven_parts(chapter: Chapter) -> Parts:
    """Drive everything that a page is about. Steps that an earlier part has, too, are told there, with all that was seen."""
    parts: list[tuple[Part, Driven]] = []
    told: dict[Place, Seen] = {}
    for part in chapter.parts:
        driven = Driven(part.occasions())
        for place in told.keys() & driven.steps.keys():
            told[place].add(driven.steps.pop(place))
        told |= driven.steps
        parts.append((part, driven))
    return parts


@cache
def finishes(chapter: Chapter) -> Finishes:
    """Who finishes what a crash leaves, in what a page is about."""
    steps = (seen for _, driven in driven_parts(chapter) for seen in driven.steps.values())
    return who_finishes(crash for seen in steps for crash in (*seen.before, *seen.applied))


def page(chapter: Chapter) -> str:
    """One page."""
    parts = driven_parts(chapter)
    places = (place for _, driven in parts for place in driven.steps)
    labels = {place: f"{number}. {place.words.title}" for number, place in enumerate(places, 1)}
    lines = [
        NOTICE,
        "",
        f"# {chapter.title}",
        "",
        *paragraph(chapter.intro),
        "",
        *paragraph(HOW_TO_READ.format(finished=chapter.finished)),
        "",
    ]
    steps = Steps(labels, chapter.presets)
    for part, driven in parts:
        lines += _part(part, driven, labels, steps)
    lines += ["## What a crash may leave", "", *_leftovers(finishes(chapter))]
    if chapter.costs:
        lines += ["", "## What it costs", "", *_costs(chapter.costs)]
    return "\n".join(lines) + "\n"


def _part(part: Part, driven: Driven, labels: Mapping[Place, str], steps: Steps) -> Iterator[str]:
    yield from (f"## {part.title}", "", *paragraph(part.intro), "")
    if steps.are_new(driven.steps) >= SMALLEST:
        drawn = diagram(driven, labels)
        dashed = any("dasharray" in line for line in drawn)
        yield from (*drawn, "", f"{SKIPPED} {CAPTION}" if dashed else CAPTION, "")
    for seen in driven.steps.values():
        yield from steps.lines(seen)


def _leftovers(found: Finishes) -> Iterator[str]:
    yield from (*paragraph(FINISHED_BY), "")
    yield from ("| left | what it is | finished by |", "| --- | --- | --- |")
    for kind in LEFTOVERS:
        if kind in found:
            yield f"| {kind} | {LEFTOVERS[kind]} | {_finishers(found[kind])} |"


def _finishers(by: Mapping[str, Mapping[str, bool]]) -> str:
    """Who always finishes it; with which presets, if not with all."""
    found: list[str] = []
    told: set[str] = set()
    for name in (name for name in FINISHERS if name in by):
        presets = by[name]
        always = {preset for preset, gone in presets.items() if gone}
        if name == "more messages":
            always -= told
        if name == "next message":
            told = always
        if always:
            limited = "" if len(always) == len(presets) else f" ({listed(f'`{one}`' for one in sorted(always))})"
            found.append(f"{FINISHERS[name]}{limited}")
    return "; ".join(found) or "nobody: it does no harm"


def _costs(costings: Sequence[Costing]) -> Iterator[str]:
    several = len(costings) > 1
    yield from (*paragraph(COSTS), "")
    yield f"{'| strategy ' if several else ''}| attempt | requests | RU | round trips | asked |"
    yield f"{'| --- ' if several else ''}| --- | --: | --: | --: | --- |"
    for strategy, costs in counted(costings):
        for cost in costs:
            asked = ", ".join(" + ".join(f"`{name}`" for name in one.split(" + ")) for one in cost.asked)
            first = f"| `{strategy}` " if several else ""
            yield f"{first}| {cost.what} | {cost.requests} | {cost.units:.1f} | {cost.rounds} | {asked} |"
