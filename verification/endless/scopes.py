"""Names within one state of an endless stream, and within one part of it."""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import Any, Final

from verification.endless.channels import RETIRED
from verification.endless.renaming import Atom, renamed
from verification.world.store import Entity

LIVE: Final = "/m"
"""What the keys of live messages have and those of retired ones have not."""


@cache
def shared_names(
    entity: Entity, committed: frozenset[tuple[str, str]], keys: tuple[tuple[str, str], ...]
) -> dict[Atom, Any]:
    """Names that mean the same all over a state, as far as the newest version and the live messages show.

    Args:
        entity: of the state.
        committed: key of each message that was committed, and the history it was handled on.
        keys: of the live messages, each with its canonical name.
    """
    live = dict(keys)
    images: dict[Atom, Any] = {("key", key): named for key, named in keys}
    images.update({("number", _number(key) + 1): _number(named) + 1 for key, named in keys})
    images["history", ""] = ""
    for key, history in committed:
        if key in live and history:
            images["history", history] = f"b{_number(live[key])}"
    if entity.history:
        images["history", entity.history] = "C"
    images["newest", entity.history] = images["history", entity.history]  # On which a save under way may build.
    if entity.truth.etag is not None:
        images["etag", entity.truth.etag] = "now"
    retired = 0
    for entry in entity.ledger.entries:
        if entry.message in live:
            images["tx", entry.tx] = f"c{_number(live[entry.message])}"
        else:
            images["key", entry.message] = f"web/q{retired}"
            images["tx", entry.tx] = f"u{retired}"
            retired += 1
    return images


class Scope:
    """What to call names in one state or in one part of it; a `Rename` of `renaming`.

    Args:
        shared: names that mean the same all over the state.
        kept: for each write in the library's log whether anybody can still ask for it.
        order: which message goes to which place.
    """

    def __init__(
        self, shared: dict[Atom, Any], kept: list[bool], order: tuple[int, ...], places: list[int] | None = None
    ) -> None:
        self.kept = kept
        self.order = order
        self._shared = shared
        self._places = places if places is not None else list(accumulate(kept, initial=0))
        self._own: dict[Atom, Any] = {}
        self._prefix = ""
        self._begun: frozenset[str] = frozenset()
        self._begun_here: dict[Atom, str] = {}
        self._retired = 0
        self._others = 0

    def of(self, prefix: str = "", begun: frozenset[str] = frozenset()) -> Scope:
        """The scope of one part.

        Args:
            prefix: of the names of transactions that the part began.
            begun: those transactions.
        """
        scope = Scope(self._shared, self.kept, self.order, self._places)
        scope._prefix = prefix
        scope._begun = begun
        return scope

    def share(self, scope: Scope) -> None:
        """Let what a part calls the transactions that it began be what they are called everywhere."""
        self._shared.update(scope._begun_here)

    def part(self, part: Any) -> Any:
        """A part of the state by these names; what it calls its transactions is shared."""
        named = renamed(part, self)
        self._shared.update(self._begun_here)
        return named

    def __call__(self, atom: Atom) -> Any:
        """What to call a name."""
        found = self._shared.get(atom)
        if found is None:
            found = self._own.get(atom)
            if found is None:
                found = self._own[atom] = self._named(*atom)
        return found

    def _named(self, sort: str, name: Any) -> Any:
        match sort:
            case "place":
                return self._places[name]
            case "history":
                before, _, message = name.rpartition(">")
                newest = self._shared.get(("newest", before)) if name else None
                return "O" if newest is None else f"{newest}>{self(('key', f'web/{message}'))[4:]}"
            case "etag" | "number":
                return "old" if sort == "etag" else RETIRED
            case "key":
                self._retired += 1
                return f"web/r{self._retired - 1}"
            case _ if name in self._begun:
                found = self._begun_here["tx", name] = f"{self._prefix}.{len(self._begun_here)}"
                return found
            case _:
                self._others += 1
                return f"x{self._others - 1}"


def found_at_once(replies: tuple[Any, ...], first: Any) -> tuple[tuple[Any, ...], Any]:
    """Replies to a run whose first view, by its new name, was as new as what it loaded relies on.

    Nothing that anybody can still ask for was written between the two views. So the run could as well have looked later: it has
    only loaded so far; or it found at once what it found in the end.
    """
    loaded, _ = replies[0]
    if len(replies) == 1:
        return (), loaded
    return ((loaded, replies[1]), *replies[2:]), first


def _number(key: str) -> int:
    return int(key.removeprefix("web/m"))
