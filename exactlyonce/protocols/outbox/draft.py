"""The draft: computes a commit from a loaded entity and messages, without effects."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from exactlyonce.effects.attempt import Before, Handled, Work
from exactlyonce.effects.effect import Opened
from exactlyonce.errors import EntityTooLarge, ExactlyOnceError
from exactlyonce.protocols.outbox.judge import Arrival, Failed, answered
from exactlyonce.protocols.steps.load import Answers, View, since_of_outputs
from exactlyonce.records.blobs import Blob
from exactlyonce.records.ledger import (
    KEPT,
    MAX_DOCUMENT_BYTES,
    Calls,
    KeptAnswer,
    Ledger,
    Mark,
    Page,
    destination_digit,
    entity_document,
    hash_in,
    is_after,
    is_timed,
    split,
    time_in,
    written,
    written_time,
)
from exactlyonce.records.library import StagedOutputs
from exactlyonce.records.outbox import Kept, OutboxEntry, Output, Sequences, kept_by, pending
from exactlyonce.values.envelope import MILLISECOND, EntityRef, milliseconds
from exactlyonce.values.frozen_json import Json, shape_json

MOST_MARKS: Final = 31
"""Marks above which the oldest leave the ledger with the next commit."""
MARKS_STAY: Final = 12
"""Marks that then stay in the ledger."""
MOST_ANSWERED: Final = 2 * 1024
"""Bytes of answers above which all answers leave the ledger with the next commit."""
_PROOF_BYTES: Final = 64  # A hash and a transaction.
_LEDGER_FRAME_BYTES: Final = 1024  # What the ledger has besides marks, entries, answers and numbers.
_MOST_ALONE: Final = MAX_DOCUMENT_BYTES - _LEDGER_FRAME_BYTES


class Commit(NamedTuple):
    """A commit's values for one message: its transaction, the time of the attempt, and the time of its outputs."""

    tx: str
    at: datetime
    since: int | None


class Draft(NamedTuple):
    """The results of the fresh messages handled so far.

    Attributes:
        handled: the latest result; None before the first.
        body: input of the next handler; None if absent or deleted.
        processed: keys of the messages to commit.
        marks: marks of the processed messages.
        to: destinations of the ledger and of the processed messages.
        outbox, answers, outputs, staged, blobs: of the processed messages.
        proofs: hash and transaction of each processed message with blobs.
        failed: key and error of each message that cannot be committed.
        sequences: the numbers given out so far.
        calls: ids of the awaited calls.
        kept: messages kept until due.
        more: whether messages are left for another commit, for lack of room in the document.
        crowded: whether nothing is processed because owed outputs take the room of the first message.
        size: bytes added to the ledger by the processed messages.
    """

    handled: Handled | None
    body: Json | None
    at: datetime
    processed: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    outbox: tuple[OutboxEntry, ...] = ()
    answers: tuple[KeptAnswer, ...] = ()
    outputs: tuple[Output, ...] = ()
    staged: tuple[StagedOutputs, ...] = ()
    blobs: tuple[Blob, ...] = ()
    proofs: tuple[tuple[str, str], ...] = ()
    failed: Failed = ()
    sequences: Sequences = ()
    calls: Calls = ()
    kept: tuple[Kept, ...] = ()
    more: bool = False
    crowded: bool = False
    size: int = 0

    def document(self, ledger: Ledger) -> Json:
        """The entity document of the commit."""
        return entity_document(Json("{}") if self.handled is None else self.handled.body, ledger)

    def replies(self, asked: tuple[Arrival, ...]) -> Answers:
        """The answers to the requests among the messages."""
        answers = {item.cause: item.answer for item in self.answers}
        answers |= {entry.cause: entry.answer for entry in self.outbox if entry.answer is not None}
        return tuple((item.key, answer) for item in asked if (answer := answers.get(item.hash)) is not None)


def draft_commit(
    work: Work,
    view: View,
    fresh: tuple[Arrival, ...],
    opened: Opened,
    refused: Failed = (),
    *,
    paid: frozenset[str] = frozenset(),
) -> Draft:
    """Run the handlers one after the other; a message that cannot be committed drops out and takes nothing along.

    Args:
        opened: time, and a transaction for each message.
        refused: key and error of fresh messages that cannot be judged.
        paid: transactions whose entries leave with the commit.
    """
    before, refused_keys = view.ledger, {key for key, _ in refused}
    draft = Draft(
        None,
        view.body,
        opened.at,
        to=before.to,
        failed=refused,
        sequences=before.sequences,
        calls=before.calls,
        kept=before.kept,
    )
    for arrival, tx in zip(fresh, opened.transactions, strict=True):
        if tx is None or arrival.key in refused_keys:  # Without a transaction, its delivery was given back.
            continue
        try:
            commit = Commit(tx, opened.at, since_of_outputs(arrival.since, opened.at, work.send_limit))
            calls = answered(draft.calls, arrival)
            handled = work.handle(_given(view, draft, commit, opened.name_of(tx)), arrival.envelope)
            drafted = _added(draft, work.entity, arrival, handled, commit, calls=(*calls, *handled.calls))
        except ExactlyOnceError as error:
            draft = draft._replace(failed=(*draft.failed, (arrival.key, error)))
            continue
        if (size := _bytes(view, drafted)) > MAX_DOCUMENT_BYTES:
            size -= _bytes_leaving(work.entity, before, paid)
        if size <= MAX_DOCUMENT_BYTES:
            draft = drafted
        elif not draft.processed and size - _bytes_owed(before, paid) <= MAX_DOCUMENT_BYTES:
            return draft._replace(crowded=True)
        elif draft.processed and handled.body.size + drafted.size - draft.size <= _MOST_ALONE:
            return draft._replace(more=True)  # Without the others it may fit.
        else:
            too_large = _too_large(work.entity, arrival, handled, size)
            draft = draft._replace(failed=(*draft.failed, (arrival.key, too_large)))
    return draft


def leaving(entity: EntityRef, ledger: Ledger) -> Page | None:
    """The page cut by the next commit; None if nothing leaves.

    The page depends only on the ledger from which the attempt starts, so all attempts on that ledger write the same page.
    """
    marks = split(ledger.marks)
    gone = marks[: len(marks) - MARKS_STAY] if len(marks) > MOST_MARKS else ()
    answers = ledger.answers if sum(answer.answer.size for answer in ledger.answers) > MOST_ANSWERED else ()
    if not gone and not answers:
        return None
    hashes = frozenset(map(hash_in, gone))
    answers = answers or tuple(answer for answer in ledger.answers if answer.cause in hashes)
    begin, until = (time_in(gone[0]), time_in(gone[-1])) if gone else (ledger.complete, -1)
    untimed = tuple(hash_in(item) for item in gone if not is_timed(item))
    return Page(
        entity=entity.key,
        number=ledger.cut + 1,
        version=ledger.version,
        before=ledger.complete,
        begin=begin,
        until=max(until, ledger.complete),
        marks=written(gone),
        to=ledger.to,
        hashes=tuple(dict.fromkeys((*untimed, *(answer.cause for answer in answers)))),
        answers=answers,
        blobs=tuple(tx for hash, tx in ledger.blobs if hash in hashes),
    )


def next_ledger(
    work: Work, view: View, draft: Draft, page: Page | None, paid: frozenset[str], *, token: str | None
) -> Ledger:
    """The ledger of the commit. `token` covers every page written so far.

    Marks older than the retention go for good, since their copies are refused. There are two exceptions. A mark with blobs
    stays until a page takes it, because the page has to prove the blobs' commit, which may be younger than the message. A
    request that owes outputs keeps its answer.
    """
    before = view.ledger
    stay = split(before.marks)[0 if page is None else len(split(page.marks)) :]  # The oldest marks leave.
    answered_there = frozenset(() if page is None else (answer.cause for answer in page.answers))
    oldest = written_time(milliseconds(draft.at) - work.retention // MILLISECOND)
    if stay and not is_after(stay[0], oldest):
        with_blobs = {hash for hash, _ in before.blobs}
        stay = tuple(item for item in stay if is_after(item, oldest) or hash_in(item) in with_blobs)
    marks = (*stay, *draft.marks)
    hashes = frozenset(map(hash_in, marks))
    outbox = (*(item for item in before.outbox if item.tx not in paid), *draft.outbox)
    remembered = hashes | {item.cause for item in outbox}
    answers = (answer for answer in before.answers if answer.cause in remembered and answer.cause not in answered_there)
    version = before.version + len(draft.processed)
    return replace(
        before,
        version=version,
        token=token,
        marks=written(marks),
        to=draft.to,
        complete=before.complete if page is None else page.until,
        left=version - len(marks),
        cut=before.cut if page is None else page.number,
        answers=(*answers, *draft.answers),
        outbox=outbox,
        blobs=(*(blob for blob in before.blobs if blob[0] in hashes), *draft.proofs),
        deleted=draft.handled is not None and draft.handled.deleted,
        sequences=draft.sequences,
        calls=draft.calls,
        kept=draft.kept,
    )


def _given(view: View, draft: Draft, commit: Commit, folder: str) -> Before:
    return Before(
        draft.body,
        commit.at,
        commit.tx,
        draft.sequences,
        version=view.ledger.version + len(draft.processed) + 1,
        kept=frozenset(item.id for item in draft.kept),
        since=commit.since,
        folder=folder,
    )


def _added(
    draft: Draft, entity: EntityRef, arrival: Arrival, handled: Handled, commit: Commit, *, calls: Calls
) -> Draft:
    """The draft with one more message; `calls` are the calls awaited afterwards."""
    to = tuple(dict.fromkeys((*draft.to, *(output.destination for output in handled.outputs))))
    places = _places(handled)
    sent = [KEPT] * (max(places.values(), default=-1) + 1)  # What its own handler cancelled has a place, too.
    for output in handled.outputs:
        sent[places[output.id]] = destination_digit(to.index(output.destination))
    since = milliseconds(commit.at) if arrival.since is None else arrival.since
    timed, content = arrival.since is not None, arrival.envelope.content[:4]
    mark = Mark(since, arrival.hash, arrival.kind, timed, content, "".join(sent)).text
    entry = _entry(entity, arrival, handled, commit, to)
    proofs = ((arrival.hash, commit.tx),) if handled.blobs else ()
    answers: tuple[KeptAnswer, ...] = ()
    if handled.answer is not None and arrival.kind != "q":
        answers = (KeptAnswer(arrival.hash, handled.answer),)
    stay = tuple(item for item in draft.kept if item.id not in handled.cancelled)
    tx = kept_by(commit.tx)
    staged: tuple[StagedOutputs, ...] = ()
    if handled.kept:
        outputs = tuple(output for _, output in handled.kept)
        staged = (StagedOutputs(entity.key, arrival.key, tx, commit.at, outputs),)
    return draft._replace(
        handled=handled,
        body=None if handled.deleted else handled.body,
        processed=(*draft.processed, arrival.key),
        marks=(*draft.marks, mark),
        to=to,
        outbox=(*draft.outbox, *entry),
        answers=(*draft.answers, *answers),
        outputs=(*draft.outputs, *handled.outputs),
        staged=(*draft.staged, *staged),
        blobs=(*draft.blobs, *handled.blobs),
        proofs=(*draft.proofs, *proofs),
        sequences=handled.sequences,
        calls=calls,
        kept=(*stay, *(Kept(output.id, due, tx) for due, output in handled.kept)),
        size=draft.size
        + len(mark)
        + len(proofs) * _PROOF_BYTES
        + sum(shape_json(answer).size for answer in (*entry, *answers)),
    )


def _places(handled: Handled) -> dict[str, int]:
    """The place of each output, and of each kept message, among the messages of its handler."""
    sent = (*handled.outputs, *(output for _, output in handled.kept))
    return {item.id: item.index if item.index >= 0 else place for place, item in enumerate(sent)}


def _entry(
    entity: EntityRef, arrival: Arrival, handled: Handled, commit: Commit, to: tuple[str, ...]
) -> tuple[OutboxEntry, ...]:
    """The entry of a message; empty if nothing is owed."""
    request = arrival.envelope.id if arrival.kind == "q" else None
    if not handled.outputs and request is None:
        return ()
    entry = OutboxEntry(
        arrival.hash,
        commit.tx,
        commit.at,
        commit.since,
        request=request,
        answer=handled.answer if request is not None else None,
    )
    places = _places(handled)
    outputs = tuple(
        pending(output, places[output.id], entity, entry, to=to.index(output.destination), sequences=handled.sequences)
        for output in handled.outputs
    )
    return (replace(entry, outputs=outputs),)


def _bytes(view: View, draft: Draft) -> int:
    """An upper bound for the bytes of the commit's document, if nothing leaves the ledger."""
    body = 0 if draft.handled is None else draft.handled.body.size
    before = 0 if view.document is None else view.document.size - (0 if view.body is None else view.body.size)
    numbers = sum(
        shape_json(item, shape).size
        for item, shape in ((draft.sequences, Sequences), (draft.kept, tuple[Kept, ...]))
        if item
    )
    return before + body + draft.size + numbers + _LEDGER_FRAME_BYTES


def _bytes_leaving(entity: EntityRef, ledger: Ledger, paid: frozenset[str]) -> int:
    """Bytes that leave the ledger with the next commit: paid entries, and answers that go to a page."""
    page = leaving(entity, ledger)
    answers = () if page is None else page.answers
    entries = (item for item in ledger.outbox if item.tx in paid)
    return sum(shape_json(entry).size for entry in (*entries, *answers))


def _bytes_owed(ledger: Ledger, paid: frozenset[str]) -> int:
    """Bytes of unpaid entries, which would leave once their outputs were sent."""
    return sum(shape_json(item).size for item in ledger.outbox if item.tx not in paid)


def _too_large(entity: EntityRef, arrival: Arrival, handled: Handled, size: int) -> EntityTooLarge:
    state, most = handled.body.size, MAX_DOCUMENT_BYTES
    sizes = f"the document would have {size} bytes, {state} of them the state; at most {most} are allowed"
    return EntityTooLarge(
        f"Message {arrival.key} on entity {entity}: {sizes}. Keep less in one entity, or send less from one handler.",
        kept=sizes,
    )
