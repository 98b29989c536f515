"""Writes what was seen as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from textwrap import fill
from typing import Final

from devtools.modelcheck.specification import costs
from devtools.modelcheck.specification.chapters import Chapter, Part
from devtools.modelcheck.specification.diagrams import NO_ANSWER, diagram
from devtools.modelcheck.specification.driving import Crash, Driven, Outcome, Seen, Target
from devtools.modelcheck.specification.leftovers import Finishes, left_by, who_finishes
from devtools.modelcheck.specification.places import Place
from devtools.modelcheck.specification.playing import PRESETS
from devtools.modelcheck.specification.vocabulary import FINISHERS, LEFTOVERS, OUTCOMES
from devtools.modelcheck.specification.words import STEPS, words_of

NOTICE: Final = (
    "<!-- Generated from the code of the strategies by `python -m devtools.modelcheck.specification`. Do not edit. -->"
)
HOW_TO_READ: Final = """
Every step is one request, with every reply that it may get; the [index](README.md) tells what each reply may mean in reality.
Where several steps may follow, the first one whose condition holds does. **Finished** means that {finished}; **again** that
nothing is proved, and that whoever asked starts over from the first step or gives up until later. A crash at a step is one
after its request was sent and before its reply was acted upon; what it leaves is the difference to what was stored before the
attempt, and may come from an earlier step.
"""
CAPTION: Final = "A request without an answer, which is not drawn, leads to *again*."
COSTS: Final = """
Counted on the store in memory, without trouble, for one message with one output. Requests side by side (+) are one round trip.
`Publish` goes to the queues and is not counted; what follows it does not delay them.
"""
FINISHED_BY: Final = """
Each attempt was left at each of its steps, and then others went on from there. Named is who always finished what was left.
"""
SKIPPED: Final = "Dashed steps are skipped where they do not apply."


Parts = Sequence[tuple[Part, Driven]]


@cache
def driven_parts(chapter: Chapter) -> Parts:
    """Drive everything that a page is about."""
    return [(part, Driven(part.occasions())) for part in chapter.parts]


@cache
def finishes(chapter: Chapter) -> Finishes:
    """Who finishes what a crash leaves, in what a page is about."""
    steps = (seen for _, driven in driven_parts(chapter) for seen in driven.steps.values())
    return who_finishes(crash for seen in steps for crash in (*seen.before, *seen.applied))


def page(chapter: Chapter) -> str:
    """One page."""
    parts = driven_parts(chapter)
    places = (place for _, driven in parts for place in driven.steps)
    labels = {place: f"{number}. {STEPS[words_of(place.key)].title}" for number, place in enumerate(places, 1)}
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
    told: dict[str, str] = {}
    for part, driven in parts:
        lines += _part(part, driven, labels, told, presets=chapter.presets)
    lines += ["## What a crash may leave", "", *_leftovers(finishes(chapter))]
    if chapter.presets:
        lines += ["", "## Requests to the store", "", *_costs()]
    return "\n".join(lines) + "\n"


def _part(
    part: Part, driven: Driven, labels: Mapping[Place, str], told: dict[str, str], *, presets: bool
) -> Iterator[str]:
    yield from (f"## {part.title}", "", part.intro, "")
    if drawn := diagram(driven, labels):
        dashed = any("dasharray" in line for line in drawn)
        yield from (*drawn, "", f"{SKIPPED} {CAPTION}" if dashed else CAPTION, "")
    for seen in driven.steps.values():
        yield from _step(seen, labels, told, presets=presets)


def _step(seen: Seen, labels: Mapping[Place, str], told: dict[str, str], *, presets: bool) -> Iterator[str]:
    """One step; what was told of the same step of another protocol on the page is not told again."""
    key = words_of(seen.place.key)
    words = STEPS[key]
    effect = seen.place.key.partition(": ")[2]
    where = (
        ""
        if not presets or len(seen.presets) == len(PRESETS)
        else f" Only in {listed(f'`{one}`' for one in seen.presets)}."
    )
    yield from (f"### {labels[seen.place]}", "")
    asks = " and ".join(f"`{one}`" for one in effect.split(" + "))
    yield from (
        *paragraph(f"{asks}, {words.when}.{where}"),
        "",
        *paragraph(f"As in step {told[key]}." if key in told else words.why),
        "",
    )
    told.setdefault(key, _link(labels[seen.place]))
    yield from ("| reply | then |", "| --- | --- |")
    for reply, targets in rows(seen.after):
        yield f"| {reply} | {_targets(targets, labels)} |"
    yield from ("", *paragraph(_crash(seen)), "")


def rows(after: Mapping[str, set[Target]]) -> list[tuple[str, frozenset[Target]]]:
    """Replies that lead to the same are one row; of two side by side it is enough that one has no answer."""
    grouped: dict[frozenset[Target], dict[str, list[str]]] = {}
    seconds: dict[str, set[str]] = {}
    for kind, targets in after.items():
        first, _, second = kind.partition(" + ")
        missing = [part for part in (first, second) if part in NO_ANSWER]
        for one, other in [(part, "") for part in missing] or [(first, second)]:
            known = grouped.setdefault(frozenset(targets), {}).setdefault(one, [])
            known += [other] if other not in known else []
            seconds.setdefault(one, set()).add(other)
    named = [
        (" or ".join(_pair(first, others, seconds[first]) for first, others in firsts.items()), targets)
        for targets, firsts in grouped.items()
    ]
    return sorted(named, key=lambda row: row[0].startswith(tuple(NO_ANSWER)))


def _pair(first: str, others: list[str], all_others: set[str]) -> str:
    """Two replies side by side; the second is told only where it matters."""
    return first if set(others) == all_others else f"{first}, {' or '.join(others)}"


def _targets(targets: Iterable[Target], labels: Mapping[Place, str]) -> str:
    steps = [_link(labels[one]) for one in sorted(one for one in targets if isinstance(one, Place))]
    ends = [_outcome(one) for one in sorted(one for one in targets if isinstance(one, Outcome))]
    return " or ".join((", ".join(steps), *ends) if steps else ends)


def _link(label: str) -> str:
    """A step's number, linked to its heading as GitHub names it."""
    anchor = re.sub(r"[^a-z0-9 -]", "", label.lower()).replace(" ", "-")
    return f"[{label.partition('.')[0]}](#{anchor})"


def _outcome(end: Outcome) -> str:
    if end.kind == "raises":
        return f"{OUTCOMES[end.kind]} `{end.what}`"
    return f"{OUTCOMES[end.kind]}: {end.what.partition(' (')[0]}"


def _crash(seen: Seen) -> str:
    unapplied, applied = _left(seen.before), _left(seen.applied)
    if not seen.applied or applied == unapplied:
        return f"A crash here leaves {unapplied}."
    return f"A crash here leaves {unapplied}. If the request was applied, it leaves {applied}."


def _left(crashes: Iterable[Crash]) -> str:
    """What may be left; where the ledger was gone before, nobody can tell."""
    kinds = {frozenset(one.kind for one in left_by(crash)) for crash in crashes if crash[0].stored.ledger is not None}
    named = {kind for one in kinds for kind in one}
    found = [f"*{kind}*" for kind in LEFTOVERS if kind in named]
    nothing = ("nothing",) if frozenset() in kinds or not kinds else ()
    return listed((*nothing, *found), "or")


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


def _costs() -> Iterator[str]:
    yield from paragraph(COSTS)
    yield from ("", "| preset | attempt | requests | round trips | asked |", "| --- | --- | --: | --: | --- |")
    for preset, strategy in costs.PRESETS.items():
        for cost in costs.costs(strategy):
            asked = ", ".join(" + ".join(f"`{name}`" for name in one.split(" + ")) for one in cost.asked)
            yield f"| `{preset}` | {cost.what} | {cost.requests} | {cost.rounds} | {asked} |"


def listed(parts: Iterable[str], last: str = "and") -> str:
    """`a, b and c`."""
    *most, end = parts
    return f"{', '.join(most)} {last} {end}" if most else end


def paragraph(text: str) -> list[str]:
    """The lines of a paragraph."""
    return fill(" ".join(text.split()), 128, break_long_words=False, break_on_hyphens=False).splitlines()
