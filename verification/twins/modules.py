"""Broken twins: the shipped modules with something replaced, so that checking can be shown to fail.

A twin is made of the modules as they are now: what is to be replaced is named as Python names it, so nothing of how it is
written matters, and a name that is gone is an error.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from types import CodeType, ModuleType
from typing import Any, Final

from exactlyonce import Outbox
from exactlyonce.drivers import book as shelf
from exactlyonce.protocols import colocated
from exactlyonce.protocols.outbox import clean as retention
from exactlyonce.protocols.outbox import draft as drafting
from exactlyonce.protocols.outbox import due
from exactlyonce.protocols.outbox import judge as judging
from exactlyonce.protocols.outbox import protocol as processing
from exactlyonce.protocols.resequencer import gaps
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer import release as resequencing
from exactlyonce.protocols.steps import batch as batching
from exactlyonce.protocols.steps import clean as cleaning
from exactlyonce.protocols.steps import load as loading
from exactlyonce.protocols.steps import park as parking
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream import replay as replaying
from exactlyonce.records import library as recorded_books
from verification.twins.all_effects import effects

STEPS: Final = (loading, parking, cleaning, batching)
OUTBOX: Final = (judging, drafting, due, processing)
BOOKS: Final = (recorded_books, shelf)
"""What drivers do with books."""
EVERYTHING: Final = (
    *(*STEPS, *OUTBOX, retention, colocated, version_stream, replaying),
    *(resequencing, gaps, resequencer),
)
"""All strategies that have mutants, in an order in which each comes after what it imports from."""

_SHARED: Final[Mapping[str, Mapping[str, Any]]] = {
    parking.__name__: {"Requeued": parking.Requeued, "Renewed": parking.Renewed},
    retention.__name__: {"Cleaned": retention.Cleaned},
    gaps.__name__: {"Rebuild": gaps.Rebuild},
    replaying.__name__: {"Replayed": replaying.Replayed},
}
"""Classes of results and settings that twins have in common with what ships: their readers ask for the class."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Something of a module, and what takes its place.

    Attributes:
        path: of what is replaced, in the module: a name, or that of a class and one of its methods.
    """

    module: str
    path: str
    wrapper: Callable[[Any], Any]

    def apply(self, module: ModuleType) -> None:
        """Put it in place. Later imports from the module get the replacement."""
        *owners, name = self.path.split(".")
        owner: Any = module
        for item in owners:
            owner = getattr(owner, item)
        setattr(owner, name, self.wrapper(vars(owner)[name]))


def around(shipped: Any, wrapper: Callable[[Any], Any]) -> Patch:
    """A function, method or class that ships, wrapped. `alterations` has wrappers."""
    return Patch(shipped.__module__, shipped.__qualname__, wrapper)


def constant(module: ModuleType, name: str, value: Any) -> Patch:
    return Patch(module.__name__, name, lambda _: value)


def twin_of(name: str, shipped: Any, *patches: Patch) -> Any:
    """What became of a function or class that ships, in modules with these patches."""
    made = modules_of(name, {shipped.__module__}, patches=patches)
    return getattr(made[shipped.__module__], shipped.__qualname__)


def modules_of(
    name: str,
    wanted: Collection[str],
    sources: Mapping[str, str] | None = None,
    patches: Collection[Patch] = (),
    others: tuple[ModuleType, ...] = (),
) -> dict[str, ModuleType]:
    """The modules that sources and patches make, and those that import from one of them, as far as the wanted ones need them.

    Args:
        wanted: names of modules. Those that nothing has changed for are left out of the result.
        patches: to be applied to the modules, each before any other module imports from its own.
        others: modules beside strategies that may be made, each after what it imports from.
    """
    modules = (*EVERYTHING, *others)
    imports = imports_of(modules)
    sources = sources or {}
    affected, needed = {*sources, *(patch.module for patch in patches)}, set(wanted)
    for module, imported in imports.items():
        if imported & affected:
            affected.add(module)
    for module, imported in reversed(imports.items()):
        if module in needed:
            needed |= imported
    here = (module for module in modules if module.__name__ in affected & needed)
    made = {module.__name__: sources.get(module.__name__) or _source(module) for module in here}
    return _modules(name, made, patches)


_source = cache(inspect.getsource)


@cache
def imports_of(modules: tuple[ModuleType, ...]) -> dict[str, frozenset[str]]:
    names = [module.__name__ for module in modules]
    return {
        module.__name__: frozenset(name for name in names if f"from {name} import" in _source(module))
        for module in modules
    }


def _modules(name: str, sources: Mapping[str, str], patches: Collection[Patch]) -> dict[str, ModuleType]:
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
            for patch in patches:
                if patch.module == original:
                    patch.apply(module)
            sys.modules[original] = module
    finally:
        sys.modules.update(shipped)
    return made


@lru_cache(4 * len(EVERYTHING))
def _compiled(source: str, name: str) -> CodeType:
    """Code of a module. Most of the modules of a twin are as shipped, and compiling them takes long."""
    return compile(source, f"<{name}>", "exec")


def room_for(marks: int, answered: int) -> tuple[Patch, ...]:
    """What makes ledgers small.

    Args:
        marks: that a ledger keeps. With more, the next commit leaves half as many.
        answered: bytes of answers that it keeps.
    """
    return (
        constant(drafting, "MOST_MARKS", marks),
        constant(drafting, "MARKS_STAY", marks // 2),
        constant(drafting, "MOST_ANSWERED", answered),
    )


@cache
def outbox(marks: int, answered: int) -> Outbox:
    made: type[Outbox] = twin_of(f"room_for_{marks}", Outbox, *room_for(marks, answered))
    return made()
