"""What was written down about mutants: where each was found, and which no world of the checker has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devtools.modelcheck.mutants.finding import Verdict

_TESTS: Final = Path(__file__).parents[3] / "tests"
OUTSIDE: Final = _TESTS / "model/mutants_outside.json"
"""Unit test to mutants that fail it: adoption, sizes, errors of handlers and the like are not in the model's world."""
WRITTEN: Final = _TESTS / "model/mutants_found.json"


def read_found() -> dict[str, Verdict]:
    """Where each mutant was found when it was last looked for."""
    written = json.loads(WRITTEN.read_text(encoding="utf-8"))
    return {name: Verdict(world, how, states) for name, (world, how, states) in written.items()}


def read_outside() -> dict[str, str]:
    """For each mutant that only a unit test can tell from the shipped strategy, that test."""
    written: dict[str, list[str]] = json.loads(OUTSIDE.read_text(encoding="utf-8"))
    return {name: test for test, names in written.items() for name in names}


def write_found(verdicts: Mapping[str, Verdict]) -> None:
    """Write down those that were found, a line each."""
    found = {name: one for name, one in verdicts.items() if one.world}
    lines = ",\n".join(
        f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps([one.world, one.how, one.states], ensure_ascii=False)}"
        for name, one in found.items()
    )
    WRITTEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
