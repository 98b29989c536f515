"""What was written down about mutants: where each was found, which no world of the checker has, which do no harm, and which
nobody has looked for yet.

All of it is kept by name, for people, and with the key of each mutant. So it is carried on by itself when files are moved and
names are changed: `carried`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from verification.mutants.source import Key, Mutant

FOLDER: Final = Path(__file__).parents[2] / "tests/model/mutants"
_FOUND: Final = "found.json"
_OUTSIDE: Final = "outside.json"
_HARMLESS: Final = "harmless.json"
_DUE: Final = "due.json"
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        world: where it was found; "" if nowhere.
        how: the property that fell, or what else gave it away; "" if nothing did.
    """

    world: str
    how: str
    states: int = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything that was written down.

    Attributes:
        outside: for each that only a unit test distinguishes from the shipped strategy, that test: adoption, sizes, errors of
            handlers and the like are not in the model's world.
        harmless: for each that does no harm, the reason. Reviewed by hand.
        due: those of which nothing is known since their functions were written. `make model` looks for them.
    """

    keys: Mapping[str, Key]
    found: Mapping[str, Verdict]
    outside: Mapping[str, str]
    harmless: Mapping[str, str]
    due: frozenset[str] = frozenset()

    @classmethod
    def read(cls) -> Tables:
        found: dict[str, list[Any]] = _read(_FOUND)
        grouped: list[dict[str, dict[str, str]]] = [_read(_OUTSIDE), _read(_HARMLESS)]
        keys = {name: Key.read(row[0]) for name, row in found.items()}
        keys |= {name: Key.read(key) for table in grouped for rows in table.values() for name, key in rows.items()}
        due: dict[str, str] = _read(_DUE)
        keys |= {name: Key.read(key) for name, key in due.items()}
        outside, harmless = ({name: item for item, rows in table.items() for name in rows} for table in grouped)
        verdicts = {name: Verdict(*row[1:]) for name, row in found.items()}
        return cls(keys, verdicts, outside, harmless, frozenset(due))

    def write(self) -> None:
        _write(_FOUND, {name: [str(self.keys[name]), *_row(item)] for name, item in self.found.items()})
        for file, table in ((_OUTSIDE, self.outside), (_HARMLESS, self.harmless)):
            grouped: dict[str, dict[str, str]] = defaultdict(dict)
            for name, one in table.items():
                grouped[one][name] = str(self.keys[name])
            _write(file, grouped)
        _write(_DUE, {name: str(key) for name, key in self.keys.items() if name in self.due})


class SoFar:
    """Verdicts in a file, a line for each as it comes, so that a long look may be interrupted.

    Args:
        path: of the file; it need not exist. None to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        rows: list[list[Any]] = [json.loads(line) for line in lines]
        self._verdicts = {(name, key): Verdict(*row) for name, key, *row in rows}

    def of(self, mutant: Mutant) -> Verdict | None:
        """What became of a mutant, if that was looked for since its function changed."""
        return self._verdicts.get((mutant.name, str(mutant.key)))

    def keep(self, mutant: Mutant, verdict: Verdict) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([mutant.name, str(mutant.key), *_row(verdict)], ensure_ascii=False) + "\n")


def carried(tables: Tables, mutants: Iterable[Mutant]) -> tuple[Tables, frozenset[str]]:
    """What was written down, for the mutants that there are now; and the names of those that have to be looked for.

    A mutant whose function is as it was keeps what is known of it, whatever its file and its names are. One that is
    recognised by its name or its shape only keeps it for the time being. Of the others nothing is known: they are due.
    """
    now = {mutant.name: mutant.key for mutant in mutants}
    same = _matched(now, tables.keys)
    likely = dict(same)
    for form in (lambda name, _: name, lambda _, key: key.exact, lambda _, key: key.shape):
        left = {name: key for name, key in now.items() if name not in likely}
        taken = set(likely.values())
        likely |= _paired(left, {name: key for name, key in tables.keys.items() if name not in taken}, form)
    found = _renamed(tables.found, likely)
    outside, harmless = _renamed(tables.outside, likely), _renamed(tables.harmless, likely)
    due = frozenset(now.keys() - found.keys() - outside.keys() - harmless.keys())
    return Tables(now, found, outside, harmless, due), frozenset(now.keys() - same.keys()) | due


def _renamed(table: Mapping[str, Row], likely: Mapping[str, str]) -> dict[str, Row]:
    return {name: table[old] for name, old in likely.items() if old in table}


def _matched(now: Mapping[str, Key], then: Mapping[str, Key]) -> dict[str, str]:
    same = {name: name for name, key in now.items() if name in then and then[name].exact == key.exact}
    left = {name: key for name, key in now.items() if name not in same}
    gone = {name: key for name, key in then.items() if name not in same}
    ours, theirs = (_grouped(item, lambda _, key: key.exact) for item in (left, gone))
    return same | {ours[key][0]: theirs[key][0] for key in ours if len(ours[key]) == len(theirs.get(key, ())) == 1}


def _paired(now: Mapping[str, Key], then: Mapping[str, Key], form: Callable[[str, Key], Hashable]) -> Mapping[str, str]:
    """For each mutant that there was once in this form the name that it had; several of one form in their order."""
    ours, theirs = _grouped(now, form), _grouped(then, form)
    return {
        name: old
        for key, names in ours.items()
        if len(names) == len(theirs.get(key, ()))
        for name, old in zip(names, theirs[key], strict=True)
    }


def _grouped(keys: Mapping[str, Key], form: Callable[[str, Key], Hashable]) -> dict[Hashable, list[str]]:
    grouped: dict[Hashable, list[str]] = defaultdict(list)
    for name, key in keys.items():
        grouped[form(name, key)].append(name)
    return grouped


def _row(verdict: Verdict) -> list[Any]:
    return [verdict.world, verdict.how, verdict.states]


def _read(file: str) -> Any:
    return json.loads((FOLDER / file).read_text(encoding="utf-8"))


def _write(file: str, table: Mapping[str, Any]) -> None:
    (FOLDER / file).write_text(_lines(table) + "\n", encoding="utf-8")


def _lines(table: Mapping[str, Any], indent: str = "") -> str:
    """A table as JSON, a row in a line; a table of tables likewise."""
    rows = (
        f"{indent}  {json.dumps(name, ensure_ascii=False)}: "
        + (_lines(row, f"{indent}  ") if isinstance(row, Mapping) else json.dumps(row, ensure_ascii=False))
        for name, row in table.items()
    )
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}" if table else "{}"
