"""Names in the parts of a state, and putting others in their place.

Protocols compare hashes of messages, transaction ids, ETags and states for equality only, and versions, numbers of pages,
session tokens and times by their order. So a state under other names is the same state. Names are atoms: (sort, name), where
the sort is "hash", "key", "tx", "book", "history", "etag", "place" (a position in the library's log), "time" (in milliseconds
since 1970), "expiry" (in seconds since the clock began), "page" and "cut" (numbers of pages: their own, and a ledger's newest),
"version" (of a ledger), "opened" (for which version a number was) or "cut from" (which version a page was).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache, singledispatch
from itertools import count
from typing import Any

from exactlyonce.effects.effect import Begun, Opened
from exactlyonce.effects.entity import Loaded, Saved, SaveEntity
from exactlyonce.effects.library import FoundPages, WritePage, Written
from exactlyonce.records.ledger import Ledger, Mark, Page, entity_document, hash_in, is_timed, split, written
from exactlyonce.records.outbox import OutboxEntry, Output, number_of, pending, transaction
from exactlyonce.values.envelope import Envelope, message_hash, milliseconds, time_of
from exactlyonce.values.frozen_json import Json
from verification.world.books import BookState, BookWritten
from verification.world.outbox import content_of, output_of
from verification.world.store import StoredPage, entity_ref, history_of, ledger_of, position_of, token_at
from verification.world.writes import WriteDown

Atom = tuple[str, Any]
Rename = Callable[[Atom], Any]


def names_of(part: Any) -> tuple[Atom, ...]:
    """The names in a reply, a write or a document, in order of appearance."""
    found: dict[Atom, None] = {}

    def note(atom: Atom) -> Any:
        found[atom] = None
        return atom[1]

    renamed(part, note)
    return tuple(found)


@singledispatch
def renamed(part: Any, rename: Rename) -> Any:
    """A reply, a write or a document under other names.

    Nobody looks for retired messages, whose hash is renamed to None: they are `r0`, `r1`, … among the marks beside them.
    """
    del rename
    return part


@renamed.register
def _(part: tuple, rename: Rename) -> Any:  # type: ignore[type-arg]
    return tuple(renamed(item, rename) for item in part)


@renamed.register
def _(part: frozenset, rename: Rename) -> Any:  # type: ignore[type-arg]
    return frozenset(rename(("tx", tx)) for tx in sorted(part))


@renamed.register
def _(part: Json, rename: Rename) -> Any:
    names = _names_of_document(part)
    return _document(part, tuple((name, rename(name)) for name in names))


@renamed.register
def _(part: Loaded, rename: Rename) -> Any:
    if part.document is None:
        return part
    return replace(part, document=renamed(part.document, rename), etag=rename(("etag", part.etag)))


@renamed.register
def _(part: Saved, rename: Rename) -> Any:
    return Saved(rename(("etag", part.etag)), None)


@renamed.register
def _(part: FoundPages, rename: Rename) -> Any:
    return FoundPages(renamed(part.pages, rename))


@renamed.register
def _(part: Page, rename: Rename) -> Any:
    marks, version = _marks(part.marks, rename), rename(("cut from", part.version))
    return replace(
        part,
        number=rename(("page", part.number)),
        version=version,
        before=rename(("time", part.before)) if version else -1,
        begin=rename(("time", part.begin)),
        until=rename(("time", part.until)),
        marks=marks,
        hashes=tuple(hash_in(item) for item in split(marks) if not is_timed(item)),
    )


@renamed.register
def _(part: StoredPage, rename: Rename) -> Any:
    page = renamed(part.page, rename)
    return StoredPage(page, str(page.number), part.expires and rename(("expiry", part.expires)))


@renamed.register
def _(part: Written, rename: Rename) -> Any:
    return Written(_token(part.token, rename))


@renamed.register(Begun)
@renamed.register(Opened)
def _(part: Any, rename: Rename) -> Any:
    given = tuple(None if tx is None else rename(("tx", tx)) for tx in part.transactions)
    return replace(part, at=_at(part.at, rename), transactions=given)


@renamed.register
def _(part: SaveEntity, rename: Rename) -> Any:
    etag = None if part.etag is None else rename(("etag", part.etag))
    return SaveEntity(part.entity, renamed(part.document, rename), etag)


@renamed.register
def _(part: WritePage, rename: Rename) -> Any:
    return replace(part, page=renamed(part.page, rename))


@renamed.register
def _(part: WriteDown, rename: Rename) -> Any:
    return WriteDown(rename(("book", part.id)), _written(part.id, part.written, rename))


@renamed.register
def _(part: BookState, rename: Rename) -> Any:
    id = part.id
    return BookState(
        rename(("book", id)),
        tuple(
            sorted((_number(id, item, rename), key, rename(("opened", version))) for item, key, version in part.open)
        ),
        _numbers(id, part.closed, rename),
        renamed(part.known, rename),
        tuple(_written(id, item, rename) for item in part.written),
        part.lives,
    )


@renamed.register
def _(part: Ledger, rename: Rename) -> Any:
    marks, version = _marks(part.marks, rename), rename(("version", part.version))
    return replace(
        part,
        version=version,
        token=None if part.token is None else _token(part.token, rename),
        marks=marks,
        complete=rename(("time", part.complete)),
        left=version - len(split(marks)),
        cut=rename(("cut", part.cut)),
        outbox=tuple(_entry(item, part, rename) for item in part.outbox),
    )


def _marks(marks: str, rename: Rename) -> str:
    retired = count()
    named = []
    for item in map(Mark.read, split(marks)):
        hash = rename(("hash", item.hash)) or message_hash(f"web/r{next(retired)}")
        named.append(item._replace(since=rename(("time", item.since)), hash=hash).text)
    return written(named)


def _entry(part: OutboxEntry, ledger: Ledger, rename: Rename) -> OutboxEntry:
    entity = entity_ref(0)
    outputs = [_output(output, rename) for output in part.owed_outputs(entity, ledger.to, ledger.sequences)]
    since = None if part.since is None else rename(("time", part.since))
    cause, tx = rename(("hash", part.cause)), rename(("tx", part.tx))
    entry = OutboxEntry(cause, tx, _at(part.at, rename), since)
    owed = zip(outputs, part.outputs, strict=True)
    return replace(
        entry, outputs=tuple(pending(new, item.index, entity, entry, to=item.to, sequences=()) for new, item in owed)
    )


def _output(output: Output, rename: Rename) -> Output:
    key, history = content_of(output)
    time = Envelope.read(output.envelope.text).time if "time" in output.envelope.value else None
    time = None if time is None else _at(time, rename)
    return output_of(rename(("key", key)), rename(("history", history)), time)


@cache
def _names_of_document(document: Json) -> tuple[Atom, ...]:
    return tuple(dict.fromkeys((("history", history_of(document)), *names_of(ledger_of(document)))))


@cache
def _document(document: Json, names: tuple[tuple[Atom, Any], ...]) -> Json:
    images = dict(names)
    body = Json.of({"id": document.value["id"], "history": images["history", history_of(document)]})
    return entity_document(body, renamed(ledger_of(document), images.__getitem__))


def _token(token: str, rename: Rename) -> str:
    return token_at(rename(("place", position_of(token))))


def _at(time: datetime, rename: Rename) -> datetime:
    return time_of(rename(("time", milliseconds(time))))


def _written(book: str, said: BookWritten, rename: Rename) -> BookWritten:
    return BookWritten(_numbers(book, said.open, rename), _numbers(book, said.paid, rename))


def _numbers(book: str, numbers: frozenset[int], rename: Rename) -> frozenset[int]:
    return frozenset(_number(book, number, rename) for number in sorted(numbers))


def _number(book: str, number: int, rename: Rename) -> int:
    return number_of(rename(("tx", transaction(book, number))))[1]
