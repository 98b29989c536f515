"""Requests to the library's partition of an entity: the documents of requests that callers opened."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from exactlyonce.effects.effect import Effect, NoAnswer, Unknown
from exactlyonce.effects.entity import Conflict
from exactlyonce.effects.library import Written
from exactlyonce.records.library import RequestDocument
from exactlyonce.values.identity import EntityRef


class Closed(Enum):
    """The reply when the document of a request is gone."""

    CLOSED = "closed"


CLOSED: Final = Closed.CLOSED


@dataclass(frozen=True, slots=True)
class FoundRequests:
    """The documents of requests that exist, in a view that is at `token`."""

    documents: tuple[RequestDocument, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class OpenRequest(Effect[Written | Conflict | Unknown]):
    """Create the document of a request. Its id is fresh."""

    entity: EntityRef
    document: RequestDocument


@dataclass(frozen=True, slots=True)
class LoadRequests(Effect[FoundRequests | NoAnswer]):
    """Read the documents of these requests, at or after `token`, if one is given. Absent ones are left out."""

    entity: EntityRef
    requests: tuple[str, ...]
    token: str | None


@dataclass(frozen=True, slots=True)
class KeepAnswers(Effect[Written | Unknown]):
    """Write these over the documents of their requests, as far as they are there.

    The token of the reply shows each of them with its answer, or gone.
    """

    entity: EntityRef
    documents: tuple[RequestDocument, ...]


@dataclass(frozen=True, slots=True)
class CloseRequest(Effect[Closed | Unknown]):
    """Delete the document of a request, if it is there."""

    entity: EntityRef
    request: str


@dataclass(frozen=True, slots=True)
class DeleteRequests(Effect[None]):
    """Delete documents of requests that still have the ETag they were read with, best effort.

    Attributes:
        entity: whose partition they lie in.
        requests: id and ETag of each.
    """

    entity: EntityRef
    requests: tuple[tuple[str, str], ...]
