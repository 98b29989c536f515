"""Which entities owe something, or hold messages, and since when: what queries of the sweeper would find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from exactlyonce.effects.companions import ReplaceCompanions, SaveBatch
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.records.companions import ColocatedRecord
from exactlyonce.values.identity import EntityRef

_NOTHING: Final = '"owing_since":null'
_LEDGER: Final = ""  # In place of a message, where the ledger keeps what is owed.
_HOLDING: Final = '"held":[['
_HELD: Final = "held"


class Owing:
    """Entities that owe; the wire reports each write that takes effect.

    Args:
        now: virtual seconds since the start.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._owing: dict[EntityRef, dict[str, float]] = defaultdict(dict)

    def saved(self, effect: SaveEntity) -> None:
        """An entity document was written; its ledger may owe, or say that messages are held."""
        self._document(effect)

    def together(self, effect: SaveBatch) -> None:
        """A batch was written; so may companions be."""
        self._document(effect)
        for one in effect.create:
            if isinstance(one, ColocatedRecord):
                self._note(effect.entity, one.message, owes=one.owed is not None)

    def replaced(self, effect: ReplaceCompanions) -> None:
        """Records were written over, or already had been."""
        for one, _ in effect.companions:
            if isinstance(one, ColocatedRecord):
                self._note(effect.entity, one.message, owes=one.owed is not None)

    def since(self, latest: float) -> list[EntityRef]:
        """Entities that have owed something, or held it, since then, or longer."""
        return [entity for entity, owing in self._owing.items() if owing and min(owing.values()) <= latest]

    def __bool__(self) -> bool:
        """Whether any entity owes or holds anything."""
        return any(self._owing.values())

    def _document(self, effect: SaveEntity | SaveBatch) -> None:
        text = effect.document.text
        self._note(effect.entity, _LEDGER, owes=_NOTHING not in text)
        self._note(effect.entity, _HELD, owes=_HOLDING in text)

    def _note(self, entity: EntityRef, what: str, *, owes: bool) -> None:
        if owes:
            self._owing[entity].setdefault(what, self._now())
        else:
            self._owing[entity].pop(what, None)
