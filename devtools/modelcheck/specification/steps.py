"""Writes steps as Markdown: what is asked and why, what follows each reply, and what a crash leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from devtools.modelcheck.specification.diagrams import NO_ANSWER
from devtools.modelcheck.specification.driving import Crash, Outcome, Seen, Target
from devtools.modelcheck.specification.leftovers import can_be_finished, left_by
from devtools.modelcheck.specification.places import Place
from devtools.modelcheck.specification.text import link, listed, paragraph
from devtools.modelcheck.specification.vocabulary import LEFTOVERS, OUTCOMES
from devtools.modelcheck.specification.words import Words

Rows = list[tuple[str, str]]
"""Replies, and what follows them."""
MOST_IN_A_PHRASE: Final = 2
NOTHING: Final = "nothing"


@dataclass(slots=True)
class Steps:
    """The steps of a page. One that another part has, too, is told once; then only what differs.

    Attributes:
        labels: number and title of every step on the page.
        presets: names of the strategies that the page is about, if it is to tell which of them come to a step; else none.
    """

    labels: Mapping[Place, str]
    presets: tuple[str, ...]
    _told: dict[Words, tuple[str, Rows]] = field(default_factory=dict)

    def lines(self, seen: Seen) -> Iterator[str]:
        """One step."""
        words, label, rows = seen.place.words, self.labels[seen.place], self._rows(seen)
        yield from (f"### {label}", "")
        before, known = self._told.setdefault(words, (link(label), rows))
        if known is rows:
            asks = listed(f"`{one}`" for one in seen.place.effect.split(" + "))
            yield from (
                *paragraph(f"{asks}.{self._where(seen)} {words.reason}"),
                "",
            )
            yield from table(rows)
        elif rows == known:
            yield f"As step {before}."
        else:
            yield from _differing(rows, known, before)
        yield ""

    def are_new(self, steps: Iterable[Place]) -> int:
        """How many of these have not been told in another part."""
        return sum(place.words not in self._told for place in steps)

    def _rows(self, seen: Seen) -> Rows:
        rows = [(reply, self._targets(targets)) for reply, targets in rows_of(seen.after)]
        unapplied, applied = _left(seen.before), _left(seen.applied)
        if seen.applied and applied != unapplied:
            return [*rows, ("*a crash*", f"leaves {unapplied}; if the request was applied, {applied}")]
        return rows if unapplied == NOTHING else [*rows, ("*a crash*", f"leaves {unapplied}")]

    def _where(self, seen: Seen) -> str:
        if set(self.presets) <= seen.presets.keys():
            return ""
        return f" Only in {listed(f'`{one}`' for one in self.presets if one in seen.presets)}."

    def _targets(self, targets: Iterable[Target]) -> str:
        steps = [link(self.labels[one]) for one in sorted(one for one in targets if isinstance(one, Place))]
        ends = [_outcome(one) for one in sorted(one for one in targets if isinstance(one, Outcome))]
        parts = (", ".join(steps), *ends) if steps else ends
        return (" or " if len(parts) <= MOST_IN_A_PHRASE else "; ").join(parts)


def table(rows: Rows) -> Iterator[str]:
    """Replies and what follows them."""
    yield from ("| reply | then |", "| --- | --- |")
    yield from (f"| {reply} | {then} |" for reply, then in rows)


def rows_of(after: Mapping[str, set[Target]]) -> list[tuple[str, frozenset[Target]]]:
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
    return first if set(others) == all_others else f"{first} + {' or '.join(others)}"


def _differing(rows: Rows, known: Rows, before: str) -> Iterator[str]:
    """In what a step is not like one before it that has the same words; all of it, if that one has replies that it has not."""
    differing = [row for row in rows if row not in known]
    if not {reply for reply, _ in known} <= {reply for reply, _ in rows}:
        yield from (f"As step {before}, with these replies:", "", *table(rows))
    elif len(differing) <= MOST_IN_A_PHRASE:
        leads = "; ".join(f"*{reply}* leads to {then}" for reply, then in differing)
        yield from paragraph(f"As step {before}, but {leads}.")
    else:
        yield from (f"As step {before}, but:", "", *table(differing))


def _outcome(end: Outcome) -> str:
    if end.kind == "raises":
        return f"{OUTCOMES[end.kind]} `{end.what}`"
    return f"{OUTCOMES[end.kind]}: {end.what.partition(' (')[0]}"


def _left(crashes: Iterable[Crash]) -> str:
    """What may be left; where it can be finished, since elsewhere nobody can tell."""
    kinds = {frozenset(one.kind for one in left_by(crash)) for crash in crashes if can_be_finished(crash[0])}
    named = {kind for one in kinds for kind in one}
    found = [f"*{kind}*" for kind in LEFTOVERS if kind in named]
    nothing = (NOTHING,) if frozenset() in kinds or not kinds else ()
    return listed((*nothing, *found), "or")
