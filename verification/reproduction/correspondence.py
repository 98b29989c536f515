"""Which name of reality stands for which of the model, and whether two things are the same but for their names.

Transaction ids, ETags and session tokens have other names in reality. None of them is passed over: an id keeps the meaning that
it had at first sight, an ETag is that of the same version, and a token stands for the same place in the same log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, NamedTuple

from exactlyonce.effects import companions
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.entity import Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import DeletePages, FoundAbove, FoundPages
from exactlyonce.records.companions import Companion, id_of
from exactlyonce.records.ledger import Ledger, Page, read_entity
from exactlyonce.records.outbox import keeper_of
from exactlyonce.stores.cosmos.partition import LIBRARY_CONTAINER
from exactlyonce.values.frozen_json import Json
from verification.reproduction.reality import ENTITIES
from verification.world.store import entity_ref, position_of

_IN_CONTAINERS_OF_ENTITIES: Final = (
    *(LoadEntity, Loaded, SaveEntity, Saved, SaveBatch, companions.LoadCompanions),
    *(
        companions.FindEntries,
        companions.FindNumbered,
        companions.FindOwing,
        companions.HasCompanions,
        companions.ReplaceCompanions,
        companions.DeleteCompanions,
    ),
)
"""Effects, and replies with a token, that are about an entity and its companions."""


Pairs = tuple[tuple[Companion | str, str | None], ...]
"""Companions, or their ids, each with its ETag."""


class Log(NamedTuple):
    """The log of one logical partition."""

    container: str
    entity: int


def entity_log(entity: int) -> Log:
    return Log(ENTITIES.container, entity)


def library_log(entity: int) -> Log:
    return Log(LIBRARY_CONTAINER, entity)


def log_of(effect: Any, entity: int) -> Log:
    return entity_log(entity) if isinstance(effect, _IN_CONTAINERS_OF_ENTITIES) else library_log(entity)


@dataclass(frozen=True, slots=True)
class _Tx:
    """A transaction id, wherever it stands."""

    id: str


class Correspondence:
    """What stands for what, as far as it has been seen.

    Args:
        outputs_name_tx: whether outputs name transactions, so that their digests have other names as well.
        recurring: whether the model gives the same transaction ids to attempts that differ by nothing else.
    """

    def __init__(self, *, outputs_name_tx: bool = False, recurring: bool = False) -> None:
        self._outputs_name_tx = outputs_name_tx
        self._recurring = recurring
        self._model_tx: dict[str, str] = {}
        self._real_tx: dict[str, str] = {}
        self._order: dict[str, int] = {}
        self._digests: dict[str, str] = {}
        self._etags: dict[tuple[str, str], str] = {}
        self._reached: dict[Log, list[int]] = {}
        self._left: dict[Log, list[int]] = {}
        self._seen: dict[Log, int] = {}

    def given(self, *real: str) -> None:
        for item in real:
            self._order.setdefault(item, len(self._order))

    def transaction(self, model: str) -> str:
        keeper = keeper_of(model)
        return self._real_tx[keeper] + model.removeprefix(keeper)

    def stands_for(self, real: str, model: str) -> tuple[str, ...]:
        """Note what a real transaction stands for; where that is not so, what is wrong."""
        return tuple(self._transactions(real, model, "given out"))

    def lsn_after(self, log: Log, position: int) -> int:
        """The commit with which the model's log came to a position."""
        return self._reached[log][position - 1]

    def advance(self, log: Log, position: int, lsn: int) -> None:
        """The model's log has come to a position, with a commit of reality."""
        reached, left = self._reached.setdefault(log, []), self._left.setdefault(log, [])
        left += [self._seen.get(log, 0)] * (position - len(left))
        reached += [lsn] * (position - len(reached))
        self._seen[log] = lsn

    def version_differences(self, id: str, model: str, real: str) -> Iterator[str]:
        """A version of a document has these ETags. What was written over without a change has several in reality."""
        known = self._etags.setdefault((id, real), model)
        if known != model:
            yield f"{id}: is as in version {known} still, in place of version {model}"

    def position(self, log: Log, lsn: int) -> int:
        """The position in the model's log after so many commits."""
        return bisect_right(self._reached.get(log, []), lsn)

    def lsn_before(self, log: Log, position: int) -> int | None:
        """The last commit after which the model's log was at this position.

        None if it still is, so that the newest view will do.

        Raises:
            TornViewError: a batch came to the position and went on.
        """
        reached = self._reached.get(log, [])
        if position >= len(reached):
            return None
        if self.is_torn(log, position):
            raise TornViewError(f"position {position} of {log} lies within a batch")
        return self._left[log][position]

    def is_torn(self, log: Log, position: int) -> bool:
        reached = self._reached.get(log, [])
        return 0 < position < len(reached) and reached[position - 1] == reached[position]

    def differences(self, real: Any, model: Any, entity: int) -> tuple[str, ...]:
        """Where an effect or a reply of reality is another than the model's."""
        return tuple(self._between(real, model, entity, type(model).__name__))

    def document_differences(self, real: Json | None, model: Json | None, entity: int) -> tuple[str, ...]:
        """Where an entity document of reality is another than the model's."""
        return tuple(self._documents(real, model, entity, f"entity {entity}"))

    def _between(self, real: Any, model: Any, entity: int, at: str) -> Iterator[str]:
        if isinstance(model, _Tx):
            yield from self._transactions(real.id, model.id, at)
        elif isinstance(model, Json) and isinstance(real, Json):
            yield from self._contents(real, model, at)
        elif is_dataclass(model) and not isinstance(model, type):
            if type(real) is not type(model):
                yield f"{at}: {_short(real)} in place of {_short(model)}"
                return
            for field in fields(model):
                yield from self._fields(real, model, field.name, entity, f"{at}.{field.name}")
        elif isinstance(model, tuple) and isinstance(real, tuple):
            if len(real) != len(model):
                yield f"{at}: {len(real)} in place of {len(model)}: {_short(real)} in place of {_short(model)}"
            for number, (mine, other) in enumerate(zip(real, model, strict=False)):
                yield from self._between(mine, other, entity, f"{at}[{number}]")
        elif real != model:
            yield f"{at}: {_short(real)} in place of {_short(model)}"

    def _fields(self, real: Any, model: Any, name: str, entity: int, at: str) -> Iterator[str]:
        mine, other = getattr(real, name), getattr(model, name)
        match name:
            case "tx" if mine and other:
                yield from self._transactions(mine, other, at)
            case "transactions":
                yield from self._between(_named(mine), _named(other), entity, at)
            case "token":
                yield from self._tokens(mine, other, log_of(model, entity), at)
            case "etag":
                yield from self._versions(entity_ref(entity).id, mine, other, at)
            case "digest" if self._outputs_name_tx:
                yield from self._digests_of(mine, other, at)
            case "companions" | "replace" if len(mine) == len(other):
                yield from self._companions(mine, other, entity, at)
            case "pages" if isinstance(model, FoundAbove | FoundPages | DeletePages) and len(mine) == len(other):
                yield from self._pages(mine, other, entity, at)
            case "document" if isinstance(model, SaveEntity | SaveBatch | Loaded):
                yield from self._documents(mine, other, entity, at)
            case _:
                yield from self._between(mine, other, entity, at)

    def _versions(self, id: str, real: str | None, model: str | None, at: str) -> Iterator[str]:
        known = None if real is None else self._etags.get((id, real), real)
        if known != model:
            yield f"{at}: {real} is not the ETag of version {model}"

    def _digests_of(self, real: str, model: str, at: str) -> Iterator[str]:
        if self._digests.setdefault(real, model) != model:
            yield f"{at}: {real} is not the digest {model}"

    def _companions(self, real: Pairs, model: Pairs, entity: int, at: str) -> Iterator[str]:
        ref = entity_ref(entity)
        for number, ((mine, had), (other, has)) in enumerate(zip(real, model, strict=True)):
            yield from self._between(mine, other, entity, f"{at}[{number}]")
            yield from self._versions(
                other if isinstance(other, str) else id_of(ref, other), had, has, f"{at}[{number}]"
            )

    def _pages(self, real: tuple[Any, ...], model: tuple[Any, ...], entity: int, at: str) -> Iterator[str]:
        """Pages, or their numbers, in any order; each with its ETag, if it has one."""
        for mine, other in zip(sorted(real, key=_number), sorted(model, key=_number), strict=True):
            if isinstance(other, Page):
                yield from self._between(mine, other, entity, at)
            else:
                yield from self._between(mine[0], other[0], entity, at)
                yield from self._versions(page_name(entity, _number(other)), mine[1], other[1], at)

    def _contents(self, real: Json, model: Json, at: str) -> Iterator[str]:
        """JSON to the letter, but for the transaction that an output may name."""
        mine, other = real.value, model.value
        if self._outputs_name_tx and all(isinstance(item, dict) and "tx" in item for item in (mine, other)):
            yield from self._transactions(mine["tx"], other["tx"], f"{at}.tx")
            real = Json.of({**mine, "tx": other["tx"]})
        if real != model:
            yield f"{at}: {_short(real)} in place of {_short(model)}"

    def conflict_differences(self, real: Any, model: Any, log: Log) -> tuple[str, ...]:
        """Where the reply to a write that met a conflict is another: its token belongs to the log that was written."""
        if not isinstance(real, type(model)):  # The adapter knows several kinds of conflict.
            return (f"{_short(real)} in place of {_short(model)}",)
        return tuple(self._tokens(real.token, model.token, log, "Conflict.token"))

    def _transactions(self, real: str, model: str, at: str) -> Iterator[str]:
        """The model gives an id again once nothing refers to it; reality never does."""
        mine, other = keeper_of(real), keeper_of(model)
        known = self._model_tx.setdefault(mine, other)
        if known != other or real.removeprefix(mine) != model.removeprefix(other):
            yield f"{at}: transaction {known} in place of {model}"
        elif self._real_tx.setdefault(other, mine) != mine:
            if not self._recurring and self._order[mine] < self._order[self._real_tx[other]]:
                yield f"{at}: an earlier transaction in place of {model}"
            self._real_tx[other] = mine

    def _tokens(self, real: str | None, model: str | None, log: Log, at: str) -> Iterator[str]:
        if real is None or model is None:
            if real is not model:
                yield f"{at}: the token {real} in place of {model}"
            return
        position = self.position(log, lsn_of(real))
        if position != position_of(model):
            yield f"{at}: a token of position {position} in place of {position_of(model)}"

    def _documents(self, real: Json | None, model: Json | None, entity: int, at: str) -> Iterator[str]:
        if real is None or model is None:
            if real is not model:
                yield f"{at}: {_short(real)} in place of {_short(model)}"
            return
        mine, other = read_entity(entity_ref(entity), real), read_entity(entity_ref(entity), model)
        yield from self._between(mine.body, other.body, entity, f"{at}.state")
        yield from self._between(mine.ledger or Ledger(), other.ledger or Ledger(), entity, f"{at}.ledger")
        if _history(real) != _history(model):  # A tombstone has no body.
            yield f"{at}: {_short(real)} in place of {_short(model)}"


class TornViewError(Exception):
    """The model lets a read see what the service never shows: a part of a batch, or a page whose time is over."""


def lsn_of(token: str) -> int:
    """The number of the commit that a real token stands for."""
    return int(token.partition("#")[2].partition("#")[0])


def _named(transactions: tuple[str, ...]) -> tuple[_Tx, ...]:
    return tuple(_Tx(tx) for tx in transactions)


def page_name(entity: int, number: int) -> str:
    return f"{entity_ref(entity).id}, page {number}"


def _number(page: Any) -> int:
    """The number of a page: given as it is, with its ETag, or as that number with an ETag."""
    first = page if isinstance(page, Page) else page[0]
    return first.number if isinstance(first, Page) else int(first)


def _history(document: Json) -> Any:
    return document.value.get("history")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"  # noqa: PLR2004
