"""Pages: marks that left a ledger together, in a document that never changes.

The pages of an entity have the numbers 1, 2, 3 …, and their numbers are their names. So of two histories of an entity, as a
document that was put back makes them, the second finds the first one's page in its way, since it uses each number, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import with_config

from exactlyonce.records.answers import Answer
from exactlyonce.values.shapes import EXACT, SCHEMA, absent_if, read_shape


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer to a request, with the hash of its message."""

    cause: str
    answer: Answer


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Page:
    """Marks that left a ledger together.

    Attributes:
        entity: key of the entity.
        number: among the pages of the entity, from 1.
        version: of the ledger from which it was cut.
        before: `until` of the page before; -1 if there is none. So an audit can tell whether that page is gone too early.
        begin: time of its oldest mark, in milliseconds since 1970.
        until: time of the newest mark that has left, in this page or before.
        marks: as the ledger had them.
        to: destinations that the marks name.
        hashes: of those of its messages that are looked for by hash: they are not timed, or their answers are here.
        answers: that left the ledger.
        blobs: transactions whose blobs were committed.
    """

    entity: str
    number: int
    version: int
    begin: int
    until: int
    marks: str
    before: Annotated[int, absent_if(-1)] = -1
    to: Annotated[tuple[str, ...], absent_if(())] = ()
    hashes: Annotated[tuple[str, ...], absent_if(())] = ()
    answers: Annotated[tuple[KeptAnswer, ...], absent_if(())] = ()
    blobs: Annotated[tuple[str, ...], absent_if(())] = ()
    kind: Literal["page"] = "page"
    schema: int = SCHEMA


def read_page(document: Any) -> Page:
    """Read a page. Raises `DamagedDocument` or `NewerSchema`."""
    return read_shape(Page, document, "A page")
