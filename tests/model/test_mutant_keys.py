"""What is known of a mutant stays with it when its file is moved and names are changed, and with nothing else."""

from __future__ import annotations

import inspect
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import ModuleType

import pytest
from rich.console import Console

from verification.mutants import __main__ as search
from verification.mutants.reviewed import SoFar, Tables, Verdict, carried
from verification.mutants.source import Mutant, mutants_of

SHIPPED = '''
class Strategy:
    def taken(self, view: View, room: int) -> int:
        """How many messages are taken."""
        free = room - view.used
        if free > 0 and view.open:
            return free
        return 0
'''
FOUND = Verdict("a world", "nothing_lost", 7)


def modules(monkeypatch: pytest.MonkeyPatch, **sources: str) -> list[Mutant]:
    """The mutants of modules with these sources."""
    monkeypatch.setattr(inspect, "getsource", lambda module: sources[module.__name__])
    return list(mutants_of(map(ModuleType, sources)))


def tables(mutants: list[Mutant]) -> Tables:
    """Each but the last two was found; one is harmless, one is for a unit test."""
    *found, outside, harmless = (mutant.name for mutant in mutants)
    return Tables(
        {mutant.name: mutant.key for mutant in mutants},
        {name: Verdict("a world", f"property {number}", 7) for number, name in enumerate(found)},
        {outside: "test_it.py::test_this"},
        {harmless: "Nobody needs it."},
    )


MOVES = {
    "another file": SHIPPED,
    "other locals": SHIPPED.replace("free", "left").replace("view", "seen"),
    "another function name": SHIPPED.replace("taken", "accepted").replace("Strategy", "Protocol"),
    "other words": SHIPPED.replace("How many messages are taken.", "The messages that fit."),
    "other annotations": SHIPPED.replace(": View", ": Sight").replace("free =", "free: int ="),
}


@pytest.mark.parametrize("moved", MOVES.values(), ids=MOVES)
def test_everything_stays_with_a_function_that_only_moved_or_was_renamed(
    moved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = modules(monkeypatch, strategies=SHIPPED)
    after = modules(monkeypatch, protocols=moved)
    known, changed = carried(tables(before), after)
    assert changed == set()
    assert known == tables(after)


RENAMED = SHIPPED.replace("view.used", "view.taken").replace("view.open", "view.is_open")
CHANGED = SHIPPED.replace("return 0", "return 0 if view else 1")


def test_a_mutant_is_looked_for_where_its_likeness_was_found_when_more_than_locals_was_renamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    after = modules(monkeypatch, strategies=RENAMED)
    known, changed = carried(tables(modules(monkeypatch, strategies=SHIPPED)), after)
    assert changed == {mutant.name for mutant in after}
    assert known == tables(after)


def test_all_mutants_of_a_function_that_changed_are_looked_for_and_what_is_new_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = modules(monkeypatch, strategies=SHIPPED), modules(monkeypatch, strategies=CHANGED)
    known, changed = carried(tables(before), after)
    assert changed == {mutant.name for mutant in after}
    assert known.found == tables(before).found
    new = {mutant.name for mutant in after} - {mutant.name for mutant in before}
    assert new
    assert not new & (known.found.keys() | known.outside.keys() | known.harmless.keys())


def test_a_changed_function_does_not_concern_the_mutants_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    other = SHIPPED.replace("Strategy", "Other").replace("room - view.used", "room")
    before = modules(monkeypatch, strategies=SHIPPED + other)
    _, changed = carried(
        tables(before), modules(monkeypatch, strategies=SHIPPED + other.replace("return 0", "return 1"))
    )
    assert changed
    assert all(name.startswith("Other.") for name in changed)


def test_functions_of_one_name_in_several_modules_are_distinguished_by_their_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [mutant.name for mutant in modules(monkeypatch, one=SHIPPED, two=SHIPPED)]
    assert names[0].startswith("one.Strategy.taken: ")
    assert names[-1].startswith("two.Strategy.taken: ")
    assert len(set(names)) == len(names)


def test_a_mutant_has_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = next(
        module
        for module in modules(monkeypatch, strategies=SHIPPED)
        if "'0'" in module.name or "turned into" in module.name
    )
    assert mutant.source == SHIPPED.replace("free > 0", "(free >= 0)")
    assert mutant.diff == "-        if free > 0 and view.open:\n+        if (free >= 0) and view.open:"


def test_a_verdict_that_was_kept_counts_until_the_function_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant, *others = modules(monkeypatch, strategies=SHIPPED)
    path = tmp_path / "so_far.jsonl"
    SoFar(path).keep(mutant, FOUND)
    assert SoFar(path).of(mutant) == FOUND
    assert [SoFar(path).of(other) for other in others] == [None] * len(others)
    changed = modules(monkeypatch, strategies=CHANGED)[0]
    assert changed.name == mutant.name
    assert SoFar(path).of(changed) is None
    SoFar(None).keep(mutant, FOUND)


def test_a_verdict_is_kept_before_the_searches_that_began_earlier_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = mutants = modules(monkeypatch, strategies=SHIPPED)
    path, is_kept = tmp_path / "so_far.jsonl", Event()

    class Watched(SoFar):
        def keep(self, mutant: Mutant, verdict: Verdict) -> None:
            super().keep(mutant, verdict)
            is_kept.set()

    def find_again(mutant: Mutant, _before: Verdict | None) -> Verdict:
        return FOUND if mutant is second or is_kept.wait(10) else Verdict("", "waited in vain")

    monkeypatch.setattr(search, "SoFar", Watched)
    monkeypatch.setattr(search, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(search, "find_again", find_again)
    monkeypatch.setattr(search, "reached", lambda: None)
    options = Namespace(so_far=path, jobs=2, changed=False)
    verdicts = search._looked_for(Console(quiet=True), [first, second], tables(mutants), options)
    assert verdicts == {first.name: FOUND, second.name: FOUND}
