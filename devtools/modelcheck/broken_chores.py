"""Broken twins of what runs beside processing: the shipped source with a few lines changed, as `twins` does for the outbox."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from devtools.modelcheck.scenarios import Chores
from devtools.modelcheck.twins import Change
from exactlyonce.strategies import fencing, retention, settling


def broken_chores(name: str, *changes: Change) -> Chores:
    """The chores with changes applied, each to the one place in `fencing`, `settling` or `retention` that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    sources = {module.__name__: inspect.getsource(module) for module in (fencing, settling, retention)}
    for change in changes:
        places = [module for module, source in sources.items() for _ in range(source.count(change.old))]
        if len(places) != 1:
            raise ValueError(f"The change of {name!r} fits in {len(places)} places:\n{change.old}")
        sources[places[0]] = sources[places[0]].replace(change.old, change.new)
    plain = "".join(character if character.isalnum() else "_" for character in name)
    twins = {original: f"broken_{plain}_{original.rpartition('.')[2]}" for original in sources}
    made: dict[str, ModuleType] = {}
    for original, changed in sources.items():
        source = changed
        for imported, twin in twins.items():
            source = source.replace(f"from {imported} import", f"from {twin} import")
        module = made[original] = sys.modules[twins[original]] = ModuleType(twins[original])
        exec(compile(source, f"<{twins[original]}>", "exec"), module.__dict__)  # noqa: S102
    settled, cleaned = made[settling.__name__], made[retention.__name__]
    return Chores(settled.sweep, settled.settle, cleaned.clean_staged, cleaned.clean_processed)
