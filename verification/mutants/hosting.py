"""Mutants of the host, where the order of steps matters: steps swapped, left out, and the first taken for one that is chosen.

The model checker runs protocols, and no host. So a unit test has to fail with each of these mutants; or `hosting.json` says why
one does no harm. `python -m verification.mutants.hosting` tries all of them.
"""

from __future__ import annotations

import ast
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from os import cpu_count
from types import ModuleType
from typing import Final

from exactlyonce.drivers import publisher
from exactlyonce.hosting import caller
from exactlyonce.hosting.config import functions
from exactlyonce.hosting.deliveries import settlement
from exactlyonce.hosting.requests import asker, door, opened_door
from exactlyonce.hosting.upkeep import sweeper
from exactlyonce.protocols.outbox import due
from exactlyonce.transports import http
from verification.mutants.operators import Swap, said
from verification.mutants.outside import fails
from verification.mutants.reviewed import FOLDER
from verification.mutants.source import Function, Key, Mutant, mutants_of

HOSTING: Final = (caller, http, settlement, asker, door, opened_door, sweeper, functions, publisher, due)
TABLE: Final = "hosting.json"


@cache
def hosting_mutants() -> tuple[Mutant, ...]:
    return tuple(mutants_of(HOSTING, steps))


def steps(function: Function, _module: ModuleType) -> Iterator[Swap]:
    """What can be done to the steps of a function: those that await something, and those next to them; and to its choices."""
    for block in _blocks(function):
        for first, second in pairwise(block):
            if (
                (_acts(first) or _acts(second))
                and not isinstance(second, Function)
                and not _bound(first) & _read(second)
            ):
                yield _swapped(first, second)
        yield from (
            Swap(f"no '{said(item)}'", item, "pass") for item in block if _acts(item) and isinstance(item, ast.Expr)
        )
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=value, slice=ast.BinOp(op=ast.Mod())):
                yield Swap(f"the first for '{said(node)}'", node, f"{ast.unparse(value)}[0]")
            case _:
                pass


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, [])
            if isinstance(block, list):
                yield [item for item in block if not _is_sentence(item)]


def _acts(statement: ast.stmt) -> bool:
    return not isinstance(statement, Function) and any(isinstance(node, ast.Await) for node in ast.walk(statement))


def _is_sentence(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound(statement: ast.stmt) -> set[str]:
    names = {
        node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    return names | {
        node.name for node in ast.walk(statement) if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
    }


def _read(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _swapped(first: ast.stmt, second: ast.stmt) -> Swap:
    both = ast.Pass(
        lineno=first.lineno,
        col_offset=first.col_offset,
        end_lineno=second.end_lineno,
        end_col_offset=second.end_col_offset,
    )
    text = textwrap.indent(f"{ast.unparse(second)}\n{ast.unparse(first)}", " " * first.col_offset).lstrip()
    return Swap(f"'{said(second)}' before '{said(first)}'", both, text)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What `hosting.json` says of the mutants."""

    keys: Mapping[str, Key]
    killed: Mapping[str, str]
    harmless: Mapping[str, str]

    @classmethod
    def read(cls) -> Reviewed:
        tables: dict[str, dict[str, dict[str, str]]] = json.loads((FOLDER / TABLE).read_text(encoding="utf-8"))
        keys = {
            name: Key.read(key) for table in tables.values() for rows in table.values() for name, key in rows.items()
        }
        killed, harmless = (
            {name: item for item, rows in tables[table].items() for name in rows} for table in ("killed", "harmless")
        )
        return cls(keys, killed, harmless)


def main() -> int:
    """Try all mutants; the exit code is 0 if each is listed, and fails its test unless it is harmless."""
    reviewed, mutants = Reviewed.read(), hosting_mutants()
    unlisted = [mutant for mutant in mutants if reviewed.keys.get(mutant.name) != mutant.key]
    listed = [mutant for mutant in mutants if mutant.name in reviewed.killed]
    with ThreadPoolExecutor(cpu_count()) as pool:
        failing = pool.map(lambda item: fails(reviewed.killed[item.name], item), listed)
        survivors = [item for item, fell in zip(listed, failing, strict=True) if not fell]
    for title, ones in (("Not listed", unlisted), ("Its test does not fail", survivors)):
        for item in ones:
            print(f"{title}: {item.name}\n{item.diff}\n")
    return int(bool(unlisted or survivors))


if __name__ == "__main__":
    sys.exit(main())
