"""Broken twins: the shipped source with a few lines changed, so that checking can be shown to fail.

A twin is a diff. It is made from the source as it is now: a change that does not apply any more is an error, never a twin that
silently equals the original.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import CodeType, ModuleType
from typing import Any, Final

from devtools.modelcheck.all_effects import effects
from devtools.modelcheck.beside.scenarios import Menders
from devtools.modelcheck.returning import Host
from devtools.modelcheck.scenarios import Chores
from exactlyonce import Outbox
from exactlyonce.effects.effect import Step
from exactlyonce.hosting import returns as returning_host
from exactlyonce.hosting import settlement as giving_up
from exactlyonce.protocols import colocated
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.outbox import settle as settling
from exactlyonce.protocols.resequencer import gaps, places
from exactlyonce.protocols.resequencer import order as total_order
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.steps import batch as batching
from exactlyonce.protocols.steps import clean_companions as truncation
from exactlyonce.protocols.steps import fence as fencing
from exactlyonce.protocols.steps import give_back as returning
from exactlyonce.protocols.steps import ownership
from exactlyonce.protocols.steps import settle as settling_beside
from exactlyonce.protocols.steps import sight as sighting
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.protocols.stream import versions
from exactlyonce.records.ledger import Protocol

OUTBOX: Final = (drafting, outbox)
CHORES: Final = (fencing, settling, retention)
MENDERS: Final = (replaying, gaps)
RETURNING: Final = (returning, returning_host, giving_up)
BESIDE: Final[Mapping[Protocol, tuple[ModuleType, ...]]] = {
    "colocated": (sighting, batching, colocated),
    "stream": (sighting, batching, versions, version_stream),
    "resequencer": (total_order, resequencing, resequencer),
}
EVERYTHING: Final = (
    *(ownership, *OUTBOX, *CHORES, sighting, batching, colocated, versions, version_stream, settling_beside),
    *(places, total_order, resequencing, resequencer, *MENDERS, truncation),
)
"""All in an order in which each comes after what it imports from."""

_SHARED: Final[Mapping[str, Mapping[str, Any]]] = {
    settling.__name__: {"Settled": settling.Settled, "Requeued": settling.Requeued},
    retention.__name__: {"Cleaned": retention.Cleaned},
    resequencer.__name__: {"Rebuild": resequencer.Rebuild},
    replaying.__name__: {"Replayed": replaying.Replayed},
}
"""Classes of results and settings that twins have in common with what ships: whoever reads one asks for its class."""


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
    return outbox_of(name, _changed(name, OUTBOX, changes))


def broken_chores(name: str, *changes: Change) -> Chores:
    """The chores with changes applied, each to the one place in `fencing`, `settling` or `retention` that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    return chores_of(name, _changed(name, CHORES, changes))


def broken_host(name: str, *changes: Change) -> Host:
    """What decides about messages that were given up with changes applied, each to the one place that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    made = _modules(name, _changed(name, RETURNING, changes))
    decides, returns = made[giving_up.__name__], made[returning_host.__name__]
    return Host(decides.GivingUp, decides.GivenUp, returns.Returning)


def broken_beside(name: str, protocol: Protocol, *changes: Change) -> ModuleType:
    """The module of a protocol of one partition with changes applied, each to the one place in its sources that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    sources = _changed(name, BESIDE[protocol], changes)
    return _modules(name, sources)[BESIDE[protocol][-1].__name__]


def broken_settler(name: str, *changes: Change) -> Callable[..., Step[Any]]:
    """The settler of the protocols of one partition with changes applied, each to the one place that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    made = _modules(name, _changed(name, (settling_beside,), changes))
    twin: Callable[..., Step[Any]] = made[settling_beside.__name__].settle_beside
    return twin


def broken_menders(name: str, *changes: Change) -> Menders:
    """What looks after read models and streams with changes applied, each to the one place in `replaying` or `gaps` that fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    made = _modules(name, _changed(name, MENDERS, changes))
    sent, tended = made[replaying.__name__], made[gaps.__name__]
    return Menders(tended.tend, sent.versions_of, sent.replay, sent.Missing)


def broken_cleaner(name: str, *changes: Change) -> Callable[..., Step[Any]]:
    """The clean-up of companions with changes applied, each to the one place in `truncation` that it fits.

    Raises:
        ValueError: a change fits nowhere, or in several places.
    """
    made = _modules(name, _changed(name, (truncation,), changes))
    twin: Callable[..., Step[Any]] = made[truncation.__name__].clean_beside
    return twin


def outbox_of(name: str, sources: Mapping[str, str]) -> type[Outbox]:
    """The outbox that these sources of `drafting` and `outbox` make."""
    twin: type[Outbox] = _modules(name, sources)[outbox.__name__].Outbox
    return twin


def chores_of(name: str, sources: Mapping[str, str]) -> Chores:
    """The chores that these sources make; `fencing`, `settling` and `retention` are among them."""
    made = _modules(name, sources)
    settled, cleaned = made[settling.__name__], made[retention.__name__]
    return Chores(settled.sweep, settled.settle, settled.requeue, cleaned.clean_staged, cleaned.clean_processed)


def modules_of(name: str, sources: Mapping[str, str], wanted: Collection[str]) -> dict[str, ModuleType]:
    """The modules that these sources make, and those that import from one of them, as far as the wanted ones need them.

    Args:
        name: of the twin.
        sources: that differ from what ships, by the names of their modules.
        wanted: names of modules. Those that nothing has changed for are left out of the result.
    """
    affected, needed = set(sources), set(wanted)
    for module, imported in _imports().items():
        if imported & affected:
            affected.add(module)
    for module, imported in reversed(_imports().items()):
        if module in needed:
            needed |= imported
    return _modules(name, {one: sources.get(one) or _sources()[one] for one in _imports() if one in affected & needed})


@cache
def _sources() -> dict[str, str]:
    return sources_of(EVERYTHING)


@cache
def _imports() -> dict[str, frozenset[str]]:
    """For each module the others that it imports from."""
    names = _sources().keys()
    return {
        module: frozenset(one for one in names if f"from {one} import" in source)
        for module, source in _sources().items()
    }


def sources_of(modules: Iterable[ModuleType]) -> dict[str, str]:
    """The source of each module, by its name; without lines of comments, so that no change depends on their words."""
    return {
        module.__name__: "".join(
            line for line in inspect.getsource(module).splitlines(keepends=True) if not line.lstrip().startswith("#")
        )
        for module in modules
    }


def _changed(name: str, modules: Iterable[ModuleType], changes: Iterable[Change]) -> dict[str, str]:
    """The sources of these modules with changes applied."""
    sources = sources_of(modules)
    for change in changes:
        places = [module for module, source in sources.items() for _ in range(source.count(change.old))]
        if len(places) != 1:
            raise ValueError(f"The change of {name!r} fits in {len(places)} places:\n{change.old}")
        sources[places[0]] = sources[places[0]].replace(change.old, change.new)
    return sources


def _modules(name: str, sources: Mapping[str, str]) -> dict[str, ModuleType]:
    """Modules made of these sources, one after the other; what they import of each other, they import of their twins."""
    plain = "".join(character if character.isalnum() else "_" for character in name)
    made: dict[str, ModuleType] = {}
    shipped = {original: sys.modules[original] for original in sources}
    try:
        for original, source in sources.items():
            module = made[original] = ModuleType(f"broken_{plain}_{original.replace('.', '_')}")
            module.__dict__["effects"] = effects  # Mutants name the replies that they make up.
            sys.modules[module.__name__] = module  # Dataclasses look their module up.
            exec(_compiled(source, original), module.__dict__)  # noqa: S102
            module.__dict__.update(_SHARED.get(original, {}))
            sys.modules[original] = module
    finally:
        sys.modules.update(shipped)
    return made


@lru_cache(4 * len(EVERYTHING))
def _compiled(source: str, name: str) -> CodeType:
    """Code of a module. Most of the modules of a twin are as shipped, and compiling them takes long."""
    return compile(source, f"<{name}>", "exec")
