"""What of the past of an endless stream can still be noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.library import DeleteStaged, Stage, WriteRecords
from exactlyonce.protocols.steps.save import with_ledger
from exactlyonce.records.ledger import entity_document
from exactlyonce.records.library import ProcessedRecord
from exactlyonce.values.frozen_json import Json
from verification.endless.scopes import LIVE, Scope
from verification.world.mentions import Write, transactions_in
from verification.world.store import Version, ledger_of, position_of

_NO_HISTORY: Final = Json.of({"id": "e0", "history": "O"})
"""The state of an older version: what is handled on it is never committed."""


def relevant(
    delayed: tuple[Write, ...], asked: frozenset[str], live: frozenset[str]
) -> tuple[tuple[Write, ...], frozenset[str]]:
    """Delayed writes without those of which nobody would notice anything; and the transactions that may be asked for.

    Args:
        delayed: writes.
        asked: transactions that documents and workers may ask for.
        live: keys of the messages that are not retired.
    """
    if not delayed:
        return delayed, asked
    asked = asked.union(*(transactions_in(write) for write in delayed if isinstance(write, SaveEntity)))
    kept: list[Write] = []
    for write in delayed:
        if isinstance(write, WriteRecords):
            records = tuple(one for one in write.records if isinstance(one, ProcessedRecord) and one.message in live)
            kept += [replace(write, records=records)] if records else []
        elif not isinstance(write, Stage | DeleteStaged) or transactions_in(write) & asked:
            kept.append(write)
    return tuple(kept), asked


def older_versions(
    versions: tuple[Version, ...], published: frozenset[str], keys: Mapping[str, str], scope: Scope
) -> tuple[Version, ...]:
    """The older versions that differ in what an attempt on them can do, by their new names.

    Its commit fails. Its other observable acts: it publishes what live messages owe, writes their records, and acknowledges a
    message that it finds. So an older version need not record retired messages and published outputs; and of two equal
    versions, the one with the older token can do all that the other can.

    Args:
        versions: older than the newest.
        published: keys of live messages whose outputs arrived.
        keys: of live messages, each with its new name.
        scope: for all other names.
    """
    lasting: list[Version] = []
    oldest: dict[tuple[Any, ...], tuple[tuple[int, int], Json]] = {}
    for version in versions:
        if version.document is None:
            lasting.append(version)
            continue
        document = scope.of().part(_without_past(version.document, frozenset(keys) - published))
        ledger = ledger_of(document)
        if ledger.channels:
            document = entity_document(_NO_HISTORY, ledger)
        live = any(one.received for one in ledger.channels) or any(LIVE in one.message for one in ledger.entries)
        if not live and not ledger.apart.channels:
            continue  # An attempt that finds the entity absent can do the same.
        age = (position_of(ledger.token), ledger.version)
        said = (*ledger.entries, *ledger.channels)
        if said not in oldest or age < oldest[said][0]:
            oldest[said] = (age, document)
    documents = sorted((document for _, document in oldest.values()), key=_text)
    return (*lasting, *(Version(document, "old") for document in documents))


@cache
def _without_past(document: Json, owing: frozenset[str]) -> Json:
    """A document in which only these messages may owe anything."""
    ledger = ledger_of(document)
    entries = (entry if entry.message in owing else replace(entry, owed=None, staged=False) for entry in ledger.entries)
    kept = tuple(entry for entry in entries if entry.recorded or entry.owed is not None)
    return with_ledger(document, replace(ledger, entries=kept))


def _text(document: Json) -> str:
    return document.text
