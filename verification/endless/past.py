"""What of the past of an endless stream can still be noticed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from exactlyonce.effects.entity import Loaded, SaveEntity
from exactlyonce.effects.library import FoundPages, WritePage
from exactlyonce.protocols.steps.load import with_ledger
from exactlyonce.records.ledger import Ledger, Page, by_hash
from exactlyonce.values.frozen_json import Json
from verification.world.mentions import Write
from verification.world.store import Entity, Library, StoredPage, Version, ledger_of, transactions_of
from verification.world.workers import Worker

Hashes = frozenset[str]
"""Of live messages."""


@cache
def without_debts(document: Json, live: Hashes) -> Json:
    """A document that owes for live messages only. What retired ones owed was published before they were acknowledged."""
    ledger = ledger_of(document)
    outbox = tuple(entry for entry in ledger.outbox if entry.cause in live)
    return document if outbox == ledger.outbox else with_ledger(document, replace(ledger, outbox=outbox))


def present(replies: tuple[Any, ...], live: Hashes) -> tuple[Any, ...]:
    """The replies to a run, as if what it loaded owed for live messages only, and without pages that show it nothing."""
    known: frozenset[str] = frozenset()
    cut = 0
    found: list[Any] = []
    for reply in replies:
        match reply:
            case Loaded(document=Json() as document):
                document = without_debts(document, live)
                known |= transactions_of(document)
                cut = ledger_of(document).cut
                found.append(replace(reply, document=document))
            case FoundPages():
                found.append(
                    FoundPages(tuple(page for page in reply.pages if _matters(page, cut - 1, frozenset(), live)))
                )
            case frozenset():
                found.append(reply & known)
            case _:
                found.append(reply)
    return tuple(found)


def documents_of(workers: Iterable[Worker], delayed: Iterable[Write]) -> Iterator[Json]:
    """The entity's documents that workers have loaded, and those that may still be saved."""
    for worker in workers:
        for reply in () if worker.situation is None else worker.situation.replies:
            if isinstance(reply, Loaded) and reply.document is not None:
                yield reply.document
    yield from (write.document for write in delayed if isinstance(write, SaveEntity))


def kept_pages(library: Library, cut: int, cuts: frozenset[int], live: Hashes) -> list[bool]:
    """For each write of the library's log whether an attempt can notice it.

    Args:
        library: with the log.
        cut: number of the newest page, by the newest ledger.
        cuts: the same of all ledgers from which an attempt may go on.
        live: hashes of live messages.
    """
    return [isinstance(item, StoredPage) and _matters(item.page, cut, cuts, live) for _, item in library.writes]


def _matters(page: Page, cut: int, cuts: frozenset[int], live: Hashes) -> bool:
    return page.number > cut or page.number in cuts or not live.isdisjoint(by_hash(page.marks))


def observable(
    delayed: tuple[Write, ...], library: Library, cut: int, cuts: frozenset[int], live: Hashes
) -> tuple[Write, ...]:
    """Delayed writes that change something: not those of pages that are there, or that nobody would notice.

    What they save owes for live messages only.
    """
    there = {item.page for item in library.now.values() if isinstance(item, StoredPage)}
    kept: list[Write] = []
    for write in delayed:
        if isinstance(write, SaveEntity):
            kept.append(replace(write, document=without_debts(write.document, live)))
        elif not isinstance(write, WritePage) or (write.page not in there and _matters(write.page, cut, cuts, live)):
            kept.append(write)
    return tuple(kept)


def older_versions(entity: Entity, library: Library, owing: Hashes, live: Hashes) -> tuple[Version, ...]:
    """The older versions on which an attempt can do what it can do on no other one.

    Its commit fails, as it does where the entity is found absent. Its other observable acts: it publishes what live messages
    owe, and acknowledges a live message that it finds. So a version is left out if the newest one owes, and knows, as much.

    Args:
        entity: as it is, and was.
        library: in which attempts look.
        owing: hashes of the live messages whose outputs have not arrived.
        live: hashes of all live messages.
    """
    newest = _knows(entity.ledger, library, live), _causes(entity.ledger)
    lasting = []
    for version in entity.versions[:-1]:
        ledger = ledger_of(version.document)
        more = not _knows(ledger, library, live) <= newest[0] or not owing & _causes(ledger) <= newest[1]
        if version.document is None or more:
            lasting.append(version)
    return tuple(lasting)


def _knows(ledger: Ledger, library: Library, live: Hashes) -> Hashes:
    """The live messages that an attempt finds."""
    pages = (item.page for item in library.now.values() if isinstance(item, StoredPage))
    marks = (by_hash(ledger.marks), *(by_hash(page.marks) for page in pages if page.number <= ledger.cut))
    return live.intersection(_causes(ledger).union(*marks))


def _causes(ledger: Ledger) -> Hashes:
    return frozenset(entry.cause for entry in ledger.outbox)
