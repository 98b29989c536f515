"""Requests for pages: the marks that have left a ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal

from exactlyonce.effects.effect import Effect, NoAnswer, Unknown
from exactlyonce.effects.library import Written
from exactlyonce.records.pages import Page
from exactlyonce.values.identity import EntityRef


class Other(Enum):
    """Another page has the number."""

    OTHER = "other"


OTHER: Final = Other.OTHER


@dataclass(frozen=True, slots=True)
class FoundPages:
    """Pages that exist, in a view at or after the token asked with; without `hashes` and `blobs`, of which marks say enough."""

    pages: tuple[Page, ...]


@dataclass(frozen=True, slots=True)
class FindPages(Effect[FoundPages | NoAnswer]):
    """Read the pages that may know some messages, and the newest one, at or after `token`. One request for up to 32 messages.

    Attributes:
        entity: whose pages they are.
        times: milliseconds since 1970. Asked for are pages whose `begin` and `until` enclose one of them.
        hashes: of messages. Asked for are pages that have one of them among their `hashes`.
        newest: number of the newest page.
        token: of the library's partition.
    """

    entity: EntityRef
    times: tuple[int, ...]
    hashes: tuple[str, ...]
    newest: int
    token: str | None

    def asks_for(self, page: Page) -> bool:
        """Whether a page is among those that are asked for."""
        within = any(page.begin <= time <= page.until for time in self.times)
        return within or page.number == self.newest or not set(self.hashes).isdisjoint(page.hashes)

    def found(self, pages: Iterable[Page]) -> FoundPages:
        """The reply where these are all pages of the entity."""
        return FoundPages(tuple(replace(one, hashes=(), blobs=()) for one in pages if self.asks_for(one)))


@dataclass(frozen=True, slots=True)
class FindBlobs(Effect[frozenset[str] | NoAnswer]):
    """Those of the transactions that some page names among its `blobs`, at or after `token`. For clean-up only."""

    entity: EntityRef
    transactions: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class HasPages(Effect[bool | NoAnswer]):
    """Whether the entity has any page, at or after `token`; without one, in whatever view answers."""

    entity: EntityRef
    token: str | None = None


@dataclass(frozen=True, slots=True)
class WritePage(Effect[Written | Literal[Other.OTHER] | Unknown]):
    """Create a page. One of the same name and content was written before, so that is as good. Another content is `OTHER`.

    Attributes:
        entity: whose page it is.
        page: what to write.
        seconds: for which the store is to keep it, whatever clean-up does.
    """

    entity: EntityRef
    page: Page
    seconds: int


@dataclass(frozen=True, slots=True)
class FoundAbove:
    """Pages that exist, each with its ETag, in a view at or after the token asked with."""

    pages: tuple[tuple[Page, str], ...]


@dataclass(frozen=True, slots=True)
class FindPagesAbove(Effect[FoundAbove | NoAnswer]):
    """Read all pages with a number above this one, at or after `token`."""

    entity: EntityRef
    number: int
    token: str | None


@dataclass(frozen=True, slots=True)
class DeletePages(Effect[None]):
    """Delete pages that still have the ETag they were read with, best effort.

    Attributes:
        entity: whose pages they are.
        pages: number of each, and its ETag.
    """

    entity: EntityRef
    pages: tuple[tuple[int, str], ...]
