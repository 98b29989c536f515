"""Steps as a flowchart in Mermaid, which GitHub draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verification.specification.driving import Outcome, Seen, Target
from verification.specification.places import Place
from verification.specification.vocabulary import FREE

NO_ANSWER: Final = frozenset({"behind", "unknown", "conflict without a token"})
"""Replies that an attempt cannot go on from."""

Arrows = dict[Place, set[Target]]


def diagram(steps: Mapping[Place, Seen], labels: Mapping[Place, str]) -> list[str]:
    """The lines of a flowchart.

    An arrow that only skips steps is left out, and so is what ends an attempt because there was no answer.
    """
    arrows: Arrows = {place: _drawn(seen.after) for place, seen in steps.items()}
    kept: Arrows = {
        place: {there for there in after if not _detour(arrows, place, there)} for place, after in arrows.items()
    }
    names: dict[Target, str] = {place: f"s{number}" for number, place in enumerate(steps, 1)}
    lines = ["```mermaid", "flowchart TD"]
    lines += [
        f'    {names[place]}("{labels[place]}")' if place.effect in FREE else f'    {names[place]}["{labels[place]}"]'
        for place in steps
    ]
    others = sorted({there for after in kept.values() for there in after if isinstance(there, Place)} - arrows.keys())
    for number, place in enumerate(others, 1):
        names[place] = f"o{number}"
        lines.append(f'    {names[place]}[["{labels[place]} …"]]')
    ends = sorted({there for after in kept.values() for there in after if isinstance(there, Outcome)})
    for number, end in enumerate(ends, 1):
        names[end] = f"e{number}"
        lines.append(f'    {names[end]}(["{_end(end)}"])')
    for place, after in kept.items():
        lines += [f"    {names[place]} --> {there}" for there in sorted(names[one] for one in after)]
    if skipped := [names[place] for place in steps if _skipped(arrows, kept, place)]:
        lines.append("    classDef optional stroke-dasharray: 5 4")
        lines.append(f"    class {','.join(skipped)} optional")
    return [*lines, "```"]


def _drawn(after: Mapping[str, set[Target]]) -> set[Target]:
    """Where arrows lead: not to what a missing answer ends; and everything that ends in starting over is one."""
    found: set[Target] = set()
    for kind, targets in after.items():
        if not NO_ANSWER & set(kind.split(" + ")):
            found |= {_merged(target) for target in targets}
    return found


def _merged(target: Target) -> Target:
    return Outcome("again", "") if isinstance(target, Outcome) and target.kind == "again" else target


def _detour(arrows: Arrows, start: Place, end: Target) -> bool:
    """Whether an arrow goes on with the attempt, and there is a longer way."""
    if isinstance(end, Outcome) and end.kind != "finished":
        return False
    return any(_reaches(arrows, there, end) for there in arrows[start] if there != end)


def _reaches(arrows: Arrows, start: Target, end: Target) -> bool:
    after = arrows.get(start, set()) if isinstance(start, Place) else set()
    return start == end or any(_reaches(arrows, there, end) for there in after)


def _skipped(arrows: Arrows, kept: Arrows, place: Place) -> bool:
    """Whether some arrow that was left out skips this step."""
    left_out = ((start, end) for start, after in arrows.items() for end in after - kept[start] if start < place)
    return any(_reaches(kept, start, place) and _reaches(kept, place, end) and end != place for start, end in left_out)


def _end(end: Outcome) -> str:
    return {"again": "again", "raises": end.what}.get(end.kind, f"finished: {end.what}")
