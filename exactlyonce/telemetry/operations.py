"""Names of effects in spans and metrics, and the operations of Cosmos DB that perform them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Final

from exactlyonce.effects.blobs import DeleteBlobs, WriteOnce
from exactlyonce.effects.books import NoteSearch, ReadBooks, WriteBook
from exactlyonce.effects.companions import (
    DeleteCompanions,
    FindEntries,
    FindNumbered,
    FindOwing,
    HasCompanions,
    LoadCompanions,
    ReplaceCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import LoadEntity, SaveEntity
from exactlyonce.effects.library import (
    DeleteStaged,
    LoadParked,
    LoadStaged,
    Park,
    Stage,
    Unpark,
)
from exactlyonce.effects.pages import DeletePages, FindBlobs, FindPages, FindPagesAbove, HasPages, WritePage
from exactlyonce.effects.publish import Publish
from exactlyonce.effects.requests import CloseRequest, DeleteRequests, KeepAnswers, LoadRequests, OpenRequest

Named = Callable[[Any], str]


def _one(name: str) -> Named:
    """The same operation for every effect."""
    return lambda _: name


def _by_number(one: str, several: str, of: Callable[[Any], Sized]) -> Named:
    """One operation for one document, another one for several."""
    return lambda effect: one if len(of(effect)) == 1 else several


_DATABASE: Final[Mapping[type[Effect[Any]], Named]] = {
    LoadEntity: _one("read_item"),
    FindPages: _one("query_items"),
    FindPagesAbove: _one("query_items"),
    FindBlobs: _one("query_items"),
    HasPages: _one("query_items"),
    WritePage: _one("create_item"),
    DeletePages: _by_number("delete_item", "execute_batch", lambda effect: effect.pages),
    WriteBook: _one("upsert_item"),
    NoteSearch: _one("replace_item"),
    ReadBooks: _by_number("read_item", "query_items", lambda effect: effect.books),
    SaveEntity: lambda effect: "create_item" if effect.etag is None else "replace_item",
    Stage: _by_number("create_item", "execute_batch", lambda effect: effect.documents),
    LoadStaged: _by_number("read_item", "query_items", lambda effect: effect.transactions),
    DeleteStaged: _by_number("delete_item", "execute_batch", lambda effect: effect.transactions),
    Park: _one("upsert_item"),
    LoadParked: _one("read_item"),
    Unpark: _one("replace_item"),
    OpenRequest: _one("create_item"),
    LoadRequests: _by_number("read_item", "query_items", lambda effect: effect.requests),
    KeepAnswers: _one("replace_item"),
    CloseRequest: _one("delete_item"),
    DeleteRequests: _by_number("delete_item", "execute_batch", lambda effect: effect.requests),
    SaveBatch: _one("execute_batch"),
    LoadCompanions: _by_number("read_item", "query_items", lambda effect: effect.ids),
    FindEntries: _one("query_items"),
    FindNumbered: _one("query_items"),
    FindOwing: _one("query_items"),
    HasCompanions: _one("query_items"),
    ReplaceCompanions: _by_number("replace_item", "execute_batch", lambda effect: effect.companions),
    DeleteCompanions: _by_number("delete_item", "execute_batch", lambda effect: effect.companions),
}
_OTHERS: Final[tuple[type[Effect[Any]], ...]] = (Publish, WriteOnce, DeleteBlobs)


@dataclass(frozen=True)
class Operation:
    """The names of one kind of effect.

    Attributes:
        name: of the effect, such as `load_entity`.
        database: gives the name of the Cosmos DB operation that performs an effect, by the conventions; None if the effect is
            no request to the store.
    """

    name: str
    database: Named | None


OPERATIONS: Final[Mapping[type[Effect[Any]], Operation]] = {
    kind: Operation(re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).lower(), _DATABASE.get(kind))
    for kind in (*_DATABASE, *_OTHERS)
}
"""All effects that reach an account. The others ask for time or chance, or combine effects."""
