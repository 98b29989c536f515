"""Mutants as named twins: `twins.json` says which, so they stay the same when what they change is written anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from verification.mutants.reviewed import read_twins
from verification.mutants.source import Mutant, all_mutants
from verification.twins.modules import Patch
from verification.twins.twin import Twin


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mutant, or several at once, under the name that `twins.json` has for them."""

    name: str


Part = Mutation | Patch


def twin_of_parts(parts: Iterable[Part]) -> Twin:
    """The twin that differs from what ships by mutations and patches.

    Raises:
        LookupError: there is no such mutation, or not its mutant any more.
        ValueError: mutants change the same place.
    """
    mutants: list[Mutant] = []
    patches: list[Patch] = []
    for part in parts:
        if isinstance(part, Patch):
            patches.append(part)
        else:
            mutants += (_mutants()[name] for name in _twins()[part.name])
    return Twin(sources_of(mutants), patches)


def sources_of(mutants: Iterable[Mutant]) -> dict[str, str]:
    """The sources of all modules that these mutants change, with all changes.

    Raises:
        ValueError: they change the same place.
    """
    by_module: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_module[mutant.module].append(mutant)
    return {module: _with_all(together) for module, together in by_module.items()}


def _with_all(mutants: list[Mutant]) -> str:
    source = mutants[0].original.encode()
    end = len(source)
    for mutant in sorted(mutants, key=lambda item: item.start, reverse=True):
        if mutant.end > end:
            raise ValueError(f"Another mutant changes the same place: {mutant.name}")
        source = source[: mutant.start] + mutant.text.encode() + source[mutant.end :]
        end = mutant.start
    return source.decode()


@cache
def _mutants() -> Mapping[str, Mutant]:
    return {mutant.name: mutant for mutant in all_mutants()}


_twins = cache(read_twins)
