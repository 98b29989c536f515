"""Requests that were opened: their documents know them, so that neither side needs a window.

A caller opens a request: its message is stored as a document in the library's partition of its entity, under a fresh id. Once
it was carried out, its entry knows it; and once the answer stands in the document, that does, until the caller closes the
request. The answer is kept after the commit, together with publishing, and before a commit that drops the entry; and only in a
document that is still there, or it would stay for ever.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.requests import FoundRequests, KeepAnswers, LoadRequests
from exactlyonce.protocols.outbox.judge import Arrived
from exactlyonce.protocols.steps.answers import Answers
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.ledger import Entry, Ledger
from exactlyonce.records.library import RequestDocument
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.session_tokens import at_or_after, later


def look_for_requests(
    entity: EntityRef, arrived: Arrived, view: View, found: FoundRequests | None
) -> Step[View | Again]:
    """The view with the documents of opened requests that it does not know. At most one effect.

    Args:
        entity: that was loaded.
        arrived: the messages of the attempt.
        view: of the entity.
        found: the documents in a view that shows each request open or answered, or gone; None if nobody has looked.
    """
    entries = {entry.message for entry in view.ledger.entries}
    unseen = tuple(one for one in arrived.requests if one.key not in entries)
    if not unseen:
        return view
    answered = set() if found is None else {one.request for one in found.documents if one.answer is not None}
    if found is None or not (
        at_or_after(found.token, view.ledger.token) or all(one.request in answered for one in unseen)
    ):
        # Look for requests again, at the ledger's session token. Their answers are kept before the commit that drops their
        # entries, so a view at that token shows each of them answered, or gone, that was carried out and has no entry.
        again = yield from LoadRequests(entity, _ids(arrived), reduce(later, _opened(arrived), view.ledger.token))
        if isinstance(again, NoAnswer):
            return Again(view.memory, "the documents of requests could not be read")
        found = again
    done = frozenset(one.key for one in unseen if one.request in {it.request for it in found.documents if it.answer})
    return replace(view, requests=found.documents, done=view.done | done)


def first_look(entity: EntityRef, arrived: Arrived, token: str | None) -> LoadRequests:
    """The look for requests while their entity is loaded: in a view that shows them open, or what became of them since.

    Args:
        entity: that is loaded.
        arrived: the messages of the attempt.
        token: that this process knows of the library's partition.
    """
    return LoadRequests(entity, _ids(arrived), reduce(later, _opened(arrived), token))


def keep_answers(entity: EntityRef, entries: tuple[Entry, ...], memory: Memory) -> Step[Memory | Again]:
    """Keep the answers of entries in the documents of their requests. At most one effect."""
    documents = tuple(
        RequestDocument(entity.key, entry.request, entry.at, None, entry.answer)
        for entry in entries
        if entry.request is not None
    )
    if not documents:
        return memory
    # Keep the answers, each in the document of its request, if that is there. A document that is gone was closed by its caller:
    # written anew, it would stay for ever, and let the request in again.
    kept = yield from KeepAnswers(entity, documents)
    if isinstance(kept, NoAnswer):
        return Again(memory, "whether the answers were kept is not known")
    return replace(memory, kept=later(memory.kept, kept.token))


def answers_kept(arrived: Arrived, view: View) -> Answers:
    """The answers that documents of requests hold."""
    answers = {document.request: document.answer for document in view.requests}
    pairs = ((one.key, answers.get(one.request or "")) for one in arrived.requests)
    return tuple((key, answer) for key, answer in pairs if answer is not None)


def marked(ledger: Ledger, memory: Memory) -> Ledger:
    """The ledger in which what this process published owes nothing. Its token shows the answers that it kept."""
    return replace(ledger.with_published(memory.published), token=relied_on(ledger, memory, ledger.token))


def relied_on(ledger: Ledger, memory: Memory, token: str | None) -> str | None:
    """The session token of a ledger that is saved next: it includes the answers whose entries leave with that save."""
    owing = any(entry.request is not None and entry.tx in memory.published for entry in ledger.entries)
    return later(token, memory.kept) if owing and memory.kept is not None else token


def _ids(arrived: Arrived) -> tuple[str, ...]:
    return tuple(one.envelope.id for one in arrived.requests)


def _opened(arrived: Arrived) -> tuple[str | None, ...]:
    return tuple(one.envelope.opened for one in arrived.requests)
