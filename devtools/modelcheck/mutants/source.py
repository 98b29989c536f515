"""Mutants as data: a name, a diff, and a module that can be run."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from heapq import merge
from types import ModuleType
from typing import Final

from devtools.modelcheck.mutants.operators import Swap, conditions, forced, swaps

LEFT_OUT: Final = frozenset({"__post_init__"})
"""Functions that only refuse nonsense in settings: unit tests see to them."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change.

    Attributes:
        name: module, function, and what was done; stable as long as the changed place stays.
        module: name of the module that is changed.
        line: where; for a statement of several lines the first.
        source: of it, changed.
        diff: the lines that differ.
    """

    name: str
    module: str
    line: int
    source: str
    diff: str


def mutants_of(module: ModuleType) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of the source; those that come to the same text once."""
    source = inspect.getsource(module)
    short = module.__name__.rpartition(".")[2]
    seen = {ast.dump(ast.parse(source))}
    names: Counter[str] = Counter()
    for function in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)):
        if function.name in LEFT_OUT:
            continue
        for swap in _by_place(function, module):
            changed = _changed(source, swap)
            dumped = ast.dump(ast.parse(changed))
            if dumped in seen:
                continue
            seen.add(dumped)
            name = f"{short}.{function.name}: {swap.what}"
            names[name] += 1
            again = f" (place {names[name]})" if names[name] > 1 else ""
            yield Mutant(name + again, module.__name__, swap.node.lineno, changed, _diff(source, changed))


def _by_place(function: ast.FunctionDef, module: ModuleType) -> Iterator[Swap]:
    tests = (swap for condition in conditions(function) for swap in forced(condition))
    return merge(sorted(tests, key=_place), sorted(swaps(function, module), key=_place), key=_place)


def _place(swap: Swap) -> tuple[int, int]:
    return swap.node.lineno, swap.node.col_offset


def _changed(source: str, swap: Swap) -> str:
    """The source with the text of a node replaced. Columns count bytes."""
    lines = source.encode().splitlines(keepends=True)
    node = swap.node
    assert node.end_lineno is not None  # noqa: S101
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + swap.text.encode() + after).decode()


def _diff(source: str, changed: str) -> str:
    lines = unified_diff(source.splitlines(), changed.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))
