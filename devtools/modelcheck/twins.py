"""Broken twins: the shipped source with a few lines changed, so that checking can be shown to fail.

A twin is a diff. It is made from the source as it is now: a change that does not apply any more is an error, never a twin that
silently equals the original.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from exactlyonce import Outbox, effects
from exactlyonce.strategies import drafting, outbox


@dataclass(frozen=True, slots=True)
class Change:
    """Some lines of the source, and what takes their place."""

    old: str
    new: str


def broken_outbox(name: str, *changes: Change) -> type[Outbox]:
    """The outbox with changes applied, each to the one place in `outbox` or `drafting` that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    sources = {module.__name__: inspect.getsource(module) for module in (drafting, outbox)}
    for change in changes:
        places = [module for module, source in sources.items() for _ in range(source.count(change.old))]
        if len(places) != 1:
            raise ValueError(f"The change of {name!r} fits in {len(places)} places:\n{change.old}")
        sources[places[0]] = sources[places[0]].replace(change.old, change.new)
    return outbox_of(name, sources)


def outbox_of(name: str, sources: Mapping[str, str]) -> type[Outbox]:
    """The outbox that these sources make; modules that are not among them stay as they are shipped."""
    shipped = {module.__name__: inspect.getsource(module) for module in (drafting, outbox)}
    twin_drafting = _module(f"broken_{name}_drafting", sources.get(drafting.__name__, shipped[drafting.__name__]))
    source = sources.get(outbox.__name__, shipped[outbox.__name__]).replace(
        f"from {drafting.__name__} import", f"from {twin_drafting.__name__} import"
    )
    twin: type[Outbox] = _module(f"broken_{name}_outbox", source).Outbox
    return twin


def _module(name: str, source: str) -> ModuleType:
    name = "".join(character if character.isalnum() else "_" for character in name)
    module = ModuleType(name)
    module.__dict__["effects"] = effects  # Mutants name the replies that they make up.
    sys.modules[name] = module  # Dataclasses look their module up.
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)  # noqa: S102
    return module
