"""Names in the parts of a state, and putting others in their place.

Protocols treat message keys, transaction ids, ETags and states as opaque, and of session tokens they compare the order only.
So a state under other names is the same state. Names are atoms: (sort, name), where the sort is "key", "tx", "history" (a
history), "etag", "channel", "number" (in a channel) or "place" (a position in the library's log, as a number).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, singledispatch
from typing import Any

from exactlyonce.records.channels import Channel

from exactlyonce.attempt import Memory
from exactlyonce.effects.effect import Begun
from exactlyonce.effects.entity import Conflict, Loaded, Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged, Found, FoundChannels, FoundStaged, Stage, WriteRecords, Written
from exactlyonce.records.ledger import Entry, Ledger, entity_document
from exactlyonce.records.library import ChannelDocument, ProcessedRecord, StagedOutputs
from exactlyonce.records.outputs import Output, OutputRef
from exactlyonce.values.frozen_json import Json
from verification.endless.channels import distinct, named_document, numbers_of, with_numbers
from verification.world.outbox_handler import content_of, output_of
from verification.world.store import entity_ref, history_of, ledger_of, position_of, token_at
from verification.world.tasks import Start

Atom = tuple[str, Any]
Rename = Callable[[Atom], Any]


def names_of(part: Any) -> tuple[Atom, ...]:
    """The names in a reply, a write, a memory or a start, in order of appearance."""
    found: dict[Atom, None] = {}

    def note(atom: Atom) -> Any:
        found[atom] = None
        return atom[1]

    renamed(part, note)
    return tuple(found)


@singledispatch
def renamed(part: Any, rename: Rename) -> Any:
    """A reply, a write, a memory or a start under other names. What no protocol reads is blotted out in documents: digests, and
    the versions of entries."""
    del rename
    return part


@renamed.register
def _(part: tuple, rename: Rename) -> Any:  # type: ignore[type-arg]
    return tuple(renamed(one, rename) for one in part)


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
def _(part: Found, rename: Rename) -> Any:
    return Found(frozenset(rename(("key", key)) for key in sorted(part.messages)), _token(part.token, rename))


@renamed.register
def _(part: FoundChannels, rename: Rename) -> Any:
    return FoundChannels(distinct(renamed(part.documents, rename)))


@renamed.register
def _(part: ChannelDocument, rename: Rename) -> Any:
    return named_document(replace(part, channel=renamed(part.channel, rename)))


@renamed.register
def _(part: Channel, rename: Rename) -> Any:
    part = replace(part, id=rename(("channel", part.id)))
    return with_numbers(part, (rename(("number", number)) for number in numbers_of(part)))


@renamed.register
def _(part: FoundStaged, rename: Rename) -> Any:
    return FoundStaged(renamed(part.documents, rename))


@renamed.register
def _(part: StagedOutputs, rename: Rename) -> Any:
    key = rename(("key", part.message))
    return replace(part, message=key, tx=rename(("tx", part.tx)), outputs=_outputs(part.outputs, rename))


@renamed.register
def _(part: Begun, rename: Rename) -> Any:
    return replace(part, transactions=tuple(None if tx is None else rename(("tx", tx)) for tx in part.transactions))


@renamed.register
def _(part: Written, rename: Rename) -> Any:
    return Written(token_at(rename(("place", position_of(part.token)))))


@renamed.register
def _(part: Conflict, rename: Rename) -> Any:
    return Conflict(_token(part.token, rename))


@renamed.register
def _(part: Saved, rename: Rename) -> Any:
    return Saved(rename(("etag", part.etag)), None)


@renamed.register
def _(part: Start, rename: Rename) -> Any:
    return replace(part, memory=renamed(part.memory, rename))


@renamed.register
def _(part: Memory, rename: Rename) -> Any:
    return replace(part, published=frozenset(_transactions(tuple(sorted(part.published)), rename)))


@renamed.register
def _(part: SaveEntity, rename: Rename) -> Any:
    etag = None if part.etag is None else rename(("etag", part.etag))
    return SaveEntity(part.entity, renamed(part.document, rename), etag)


@renamed.register
def _(part: WriteRecords, rename: Rename) -> Any:
    return replace(part, records=renamed(part.records, rename))


@renamed.register
def _(part: ProcessedRecord, rename: Rename) -> Any:
    key = rename(("key", part.message))
    return replace(part, message=key, tx="", version=0, digest="", outputs=_refs(part.outputs, key))


@renamed.register
def _(part: Stage, rename: Rename) -> Any:
    return replace(part, documents=renamed(part.documents, rename))


@renamed.register
def _(part: DeleteStaged, rename: Rename) -> Any:
    return replace(part, transactions=tuple(None if tx is None else rename(("tx", tx)) for tx in part.transactions))


@renamed.register
def _(part: Ledger, rename: Rename) -> Any:
    entries = renamed(part.entries, rename)
    channels = renamed(part.channels, rename)
    return replace(part, token=_token(part.token, rename), entries=entries, channels=channels)


@renamed.register
def _(part: Entry, rename: Rename) -> Any:
    key = rename(("key", part.message))
    owed = part.owed
    if isinstance(owed, tuple):
        source = entity_ref(0).source
        owed = tuple(output.content(source, part.at) for output in _outputs(part.owed_outputs(source), rename))
    outputs = _refs(part.outputs, key)
    return replace(part, message=key, tx=rename(("tx", part.tx)), version=0, digest="", outputs=outputs, owed=owed)


@cache
def _names_of_document(document: Json) -> tuple[Atom, ...]:
    return tuple(dict.fromkeys((("history", history_of(document)), *names_of(ledger_of(document)))))


@cache
def _document(document: Json, names: tuple[tuple[Atom, Any], ...]) -> Json:
    images = dict(names)
    body = Json.of({"id": document.value["id"], "history": images["history", history_of(document)]})
    return entity_document(body, renamed(ledger_of(document), images.__getitem__))


def _token(token: str | None, rename: Rename) -> str | None:
    return None if token is None else token_at(rename(("place", position_of(token))))


def _transactions(transactions: tuple[str, ...], rename: Rename) -> tuple[str, ...]:
    return tuple(rename(("tx", tx)) for tx in transactions)


def _outputs(outputs: tuple[Output, ...], rename: Rename) -> tuple[Output, ...]:
    contents = (content_of(output) for output in outputs)
    return tuple(output_of(rename(("key", key)), rename(("history", history))) for key, history in contents)


def _refs(refs: tuple[OutputRef, ...], key: str) -> tuple[OutputRef, ...]:
    return tuple(replace(ref, id=f"out:{key}") for ref in refs)
