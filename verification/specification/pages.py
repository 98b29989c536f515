"""Writes the observed steps as Markdown: a picture, the steps with their reasons, and a table of replies and next steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Final

from verification.specification.chapters import CHAPTERS, Chapter, Part, prose
from verification.specification.diagrams import NO_ANSWER, diagram
from verification.specification.driving import Crash, Outcome, Seen, Target
from verification.specification.leftovers import can_be_finished, left_by
from verification.specification.places import Place
from verification.specification.vocabulary import (
    FINISHERS,
    FREE,
    LEFTOVERS,
    NO_ANSWER_TO_READS,
    REPLIES,
    UNKNOWN_WRITE,
    request,
)

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "protocols"
COMMAND: Final = "python -m verification.specification"
NOTICE: Final = f"<!-- Generated from the code of the strategies by `{COMMAND}`. Do not edit. -->"
INTRO: Final = """\
The protocols step by step, generated from the code: a program runs the strategies through every reply to every request, and
takes the prose from their docstrings and comments. A test compares pages and code. Guarantees and assumed faults are in
[guarantees](../guarantees.md), terms in the [glossary](../glossary.md), costs in [performance](../performance.md).
"""
OTHERS: Final = (("published-algorithm.md", "The algorithm as it was published, and what is different here."),)
HOW_TO_READ: Final = """\
Every step is one request, or two concurrent ones ("+"). A rounded one, in italics in tables, costs no request of the store: the
process knows the answer, or its driver does (`FindPaid` may read books of other processes). The table below the steps of a part
gives the next step for each reply; of several, the first that applies.

- **Finished**: the attempt ends. Messages may be acknowledged, except failed ones; so may a settled delivery.
- **Again**: nothing is proved. The caller starts over from the first step, at once or later.
- **Raises**: the strategy stops with this error.
- **A crash** at a step comes between its request and the use of the reply. The row names the
  [half-done work](#half-done-work-after-a-crash) by then. A step without the row leaves none.
"""
LEFT_INTRO: Final = "A test continues after every crash, and checks that a named finisher finishes each of these."
REPLIES_INTRO: Final = (
    "A reply does not determine what happened. The protocols are correct under each of these meanings."
)
CAPTION: Final = "What an unanswered request leads to is not drawn."
DASHED: Final = "Dashed steps are skipped if they do not apply."
SMALLEST: Final = 3
"""Fewer steps need no picture."""
NOTHING: Final = "nothing"


@cache
def pages() -> Mapping[str, str]:
    """Every page by its name, as the code is now."""
    return {name: "\n".join((NOTICE, "", *lines)) + "\n" for name, lines in _pages()}


def _pages() -> Iterator[tuple[str, Iterable[str]]]:
    yield "README.md", _index()
    for chapter in CHAPTERS:
        yield chapter.name, _page(chapter)


def _page(chapter: Chapter) -> Iterator[str]:
    summary, _, rest = prose(chapter.module).partition("\n\n")
    title, _, further = summary.partition(": ")
    yield from (f"# {title.rstrip('.')}", "")
    yield from (f"{further[:1].upper()}{further[1:]}".splitlines() or [])
    yield from ("",) if further and rest else ()
    yield from (*rest.splitlines(), "") if rest else ("",)
    yield "See [how to read this page](README.md#how-to-read-the-pages)."
    numbers, links = _numbers(chapter), _links(chapter)
    for part in chapter.parts:
        yield from _part(part, numbers, links)


@cache
def _everything() -> Mapping[Place, Seen]:
    """All that was seen, by any part."""
    found: dict[Place, Seen] = {}
    for driven in (part.driven for chapter in CHAPTERS for part in chapter.parts):
        for place, seen in driven.steps.items():
            found.setdefault(place, Seen(place)).add(seen)
    return found


@cache
def _homes() -> Mapping[Place, tuple[Chapter, Part]]:
    """Where each step is described: with the function that it is of, or else in the first part that has it."""
    parts = [(chapter, part) for chapter in CHAPTERS for part in chapter.parts]
    homes: dict[Place, tuple[Chapter, Part]] = {}
    for place in sorted(_everything()):
        own = (one for one in parts if place.is_of(one[1].function))
        homes[place] = next(own, None) or next(one for one in parts if place in one[1].driven.steps)
    return homes


@cache
def _numbers(chapter: Chapter) -> Mapping[Place, int]:
    """The steps of a page, in order, each with its number."""
    steps = (place for part in chapter.parts for place, home in _homes().items() if home == (chapter, part))
    return {place: number for number, place in enumerate(steps, 1)}


def _links(chapter: Chapter) -> Mapping[Place, str]:
    """What stands on a page for steps of others."""
    return {
        place: f"[{home.name.removesuffix('.md')} {_numbers(home)[place]}]({home.name})"
        for place, (home, _) in _homes().items()
        if home != chapter
    }


def _part(part: Part, numbers: Mapping[Place, int], links: Mapping[Place, str]) -> Iterator[str]:
    """A part, and the steps that it describes."""
    steps = {place: _everything()[place] for place in numbers if _homes()[place][1] == part}
    yield from ("", f"## {part.title}", "", *prose(part.function).splitlines(), "")
    begins = [place for place in part.driven.begins if isinstance(place, Place)]
    if begins and begins != [*steps][:1]:
        yield from (f"It begins with step {listed(_named(begins, numbers, links), 'or')}.", "")
    if len(steps) >= SMALLEST:
        labels = {place: f"{number} · {place.words.title}" for place, number in numbers.items()}
        drawn = diagram(steps, {**{place: place.words.title for place in links}, **labels})
        yield from (*drawn, "", f"{DASHED} {CAPTION}" if any("dasharray" in line for line in drawn) else CAPTION, "")
    if not steps:
        yield f"Its steps are {listed(str(numbers[place]) for place in part.driven.steps)}."
        return
    presets = {preset for seen in steps.values() for preset in seen.presets}
    said = ""
    for place, seen in steps.items():
        words, here = place.words, seen.presets
        only = "" if here.keys() == presets else f"Only in {listed(f'`{one}`' for one in here)}."
        reasons = (words.occasion if words.occasion != said else "", words.reason, only)
        said = words.occasion
        text = f"{numbers[place]}. **{words.title}.** {' '.join(one for one in reasons if one)}"
        yield from wrap(text, 128, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    yield from ("", "| step | reply | then |", "| --- | --- | --- |")
    for place, seen in steps.items():
        effect = " + ".join(f"`{one}`" for one in place.effect.split(" + "))
        first = f"{numbers[place]} {f'*{effect}*' if place.effect in FREE else effect}"
        for reply, then in _rows(seen, numbers, links):
            yield f"| {first} | {reply} | {then} |"
            first = ""


def _rows(seen: Seen, numbers: Mapping[Place, int], links: Mapping[Place, str]) -> Iterator[tuple[str, str]]:
    """Replies, and what follows them; at last a crash."""
    known = [*REPLIES[seen.place.effect.partition(" + ")[0]]]
    after = sorted(seen.after.items(), key=lambda item: known.index(item[0].partition(" + ")[0]))
    for reply, targets in rows_of(dict(after)):
        steps = _named((one for one in targets if isinstance(one, Place)), numbers, links)
        ends = sorted(one for one in targets if isinstance(one, Outcome))
        yield reply, "; ".join((*([", ".join(steps)] if steps else []), *map(_end, ends)))
    unapplied, applied = _left(seen.before), _left(seen.applied)
    if seen.applied and applied != unapplied:
        yield "*a crash*", f"leaves {unapplied}; if the request was applied, {applied}"
    elif unapplied != NOTHING:
        yield "*a crash*", f"leaves {unapplied}"


def _named(places: Iterable[Place], numbers: Mapping[Place, int], links: Mapping[Place, str]) -> list[str]:
    """The steps of this page by their numbers, then those of others."""
    found = sorted(places)
    here = sorted(numbers[one] for one in found if one in numbers)
    return [*map(str, here), *(links[one] for one in found if one in links)]


def rows_of(after: Mapping[str, set[Target]]) -> list[tuple[str, frozenset[Target]]]:
    """Replies that lead to the same are one row; of two side by side it is enough that one has no answer."""
    grouped: dict[frozenset[Target], dict[str, list[str]]] = {}
    seconds: dict[str, set[str]] = {}
    for kind, targets in after.items():
        first, _, second = kind.partition(" + ")
        missing = [part for part in (first, second) if part in NO_ANSWER]
        for one, other in [(part, "") for part in missing] or [(first, second)]:
            others = grouped.setdefault(frozenset(targets), {}).setdefault(one, [])
            others += [other] if other not in others else []
            seconds.setdefault(one, set()).add(other)
    named = [
        (" or ".join(_pair(first, others, seconds[first]) for first, others in firsts.items()), targets)
        for targets, firsts in grouped.items()
    ]
    return sorted(named, key=lambda row: row[0].startswith(tuple(NO_ANSWER)))


def _pair(first: str, others: list[str], all_others: set[str]) -> str:
    """Two replies side by side; the second is named only where it matters."""
    return first if set(others) == all_others else f"{first} + {' or '.join(others)}"


def _end(end: Outcome) -> str:
    if end.kind == "raises":
        return f"raises `{end.what}`"
    return f"{end.kind}: {end.what.partition(' (')[0]}"


def _left(crashes: Iterable[Crash]) -> str:
    """What may be left, in cases in which it can be finished."""
    kinds = {frozenset(one.kind for one in left_by(crash)) for crash in crashes if can_be_finished(crash[0])}
    named = {kind for one in kinds for kind in one}
    nothing = (NOTHING,) if frozenset() in kinds or not kinds else ()
    return listed((*nothing, *(f"*{kind}*" for kind in LEFTOVERS if kind in named)), "or")


def _index() -> Iterator[str]:
    yield from ("# Protocols", "", *INTRO.splitlines(), "", "| page | about |", "| --- | --- |")
    for name, summary in (*((chapter.name, chapter.summary) for chapter in CHAPTERS), *OTHERS):
        yield f"| [{name}]({name}) | {summary} |"
    yield from ("", "## How to read the pages", "", *HOW_TO_READ.splitlines())
    yield from ("", "## Half-done work after a crash", "", LEFT_INTRO, "")
    yield from ("| half-done work | meaning | finished by |", "| --- | --- | --- |")
    for kind, (meaning, finishers) in LEFTOVERS.items():
        yield f"| {kind} | {meaning} | {listed((FINISHERS[one] for one in finishers), 'or')} |"
    yield from ("", "## Requests and replies", "", REPLIES_INTRO, "")
    yield from ("| request | reply | possible meanings |", "| --- | --- | --- |")
    for reply, meaning in NO_ANSWER_TO_READS.items():
        yield f"| any read | {reply} | {meaning} |"
    yield f"| any write | unknown | {UNKNOWN_WRITE} |"
    common = {*NO_ANSWER_TO_READS.values(), UNKNOWN_WRITE}
    for name, replies in REPLIES.items():
        named = f"`{name}`: {request(name)}"
        for reply, meaning in replies.items():
            if meaning not in common:
                yield f"| {named} | {reply} | {meaning} |"
                named = ""


def listed(parts: Iterable[str], last: str = "and") -> str:
    """`a, b and c`."""
    *most, end = parts
    return f"{', '.join(most)} {last} {end}" if most else end
