"""Kept messages: released when due, by a commit of their entity whose handler only sends them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from exactlyonce.effects.attempt import Again, Before, Finished, Handled, Work
from exactlyonce.effects.effect import Begin, NoAnswer, Opened, Step
from exactlyonce.effects.library import CloseNumbers, LoadStaged, OpenNumbers
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.outbox.draft import Draft, draft_commit
from exactlyonce.protocols.outbox.judge import Arrival, Failed
from exactlyonce.protocols.steps.load import View
from exactlyonce.records.outbox import Kept, Output
from exactlyonce.values.envelope import EntityRef, Envelope, derived_id, key_of, message_hash, message_key

RELEASE: Final = "release:"
"""Prefix of a kept message's id in the key of its release."""
MOST_RELEASED: Final = 100
"""Most kept messages released by one commit."""

Commit = Callable[[Work, View, Draft, Opened], Step[Finished | Again]]


def release(work: Work, view: View, commit: Commit) -> Step[Failed | Again]:
    """Release the kept messages that are due. At most 3 effects, and those of a commit; one where none is due.

    Release and cancel are conditional saves of the same document: exactly one wins. The same holds for two releases.

    Returns the errors of messages that cannot be released; `Again` after releasing any, since more may be due.

    Args:
        work: the entity, with the release of its messages.
        view: view of the entity. An old view names messages released or cancelled since; the commit then fails on its
            condition.
        commit: commits a draft, and publishes the outputs.
    """
    due = yield from _due(work.entity, view)
    if isinstance(due, Again):
        return due
    if not due:
        return ()
    gone = tuple((message_key(work.entity.source, item.id), _gone(item)) for item, output in due if output is None)
    outputs = tuple(output for _, output in due if output is not None)
    messages = tuple(_arrival(Envelope.read(output.envelope.text)) for output in outputs)
    kept = dict(zip((message.key for message in messages), outputs, strict=True))

    def handle(before: Before, envelope: Envelope) -> Handled:
        key = key_of(envelope)
        return _renamed(work.entity, work.release(before, kept[key]), message_hash(key))

    # Open numbers, and release the messages. The release sets their time.
    opened = yield from OpenNumbers(work.entity, view.ledger.version, more=len(messages))
    if isinstance(opened, NoAnswer):
        return Again(view.memory, "whether the store has the book of this process is not known")
    draft = draft_commit(replace(work, handle=handle), view, messages, opened)
    if not draft.processed:
        # Close the numbers. No commit has them.
        yield from CloseNumbers(opened.given)
        return (*gone, *draft.failed)
    outcome = yield from commit(work, view, draft, opened)
    if isinstance(outcome, Again):
        return outcome
    return Again(outcome.memory, "more may be due", progressed=True)


def _due(entity: EntityRef, view: View) -> Step[tuple[tuple[Kept, Output | None], ...] | Again]:
    """The due messages, each with its output; None where the output is gone. At most 2 effects."""
    if not view.ledger.kept:
        return ()
    # Ask for the time. With a clock that is ahead, messages are released early by as much.
    begun = yield from Begin()
    due = due_in(view.ledger.kept, begun.at)
    if not due:
        return ()
    # Read the kept messages that are due. Their documents were staged before the commit that keeps them, so a view at the
    # ledger's session token has them. A missing message stays kept: the view is old, or the document was deleted by hand.
    staged = yield from LoadStaged(entity, tuple(dict.fromkeys(item.tx for item in due)), view.ledger.token)
    if isinstance(staged, NoAnswer):
        return Again(view.memory, "kept messages could not be read")
    stored = {output.id: output for document in staged.documents for output in document.outputs}
    return tuple((item, stored.get(item.id)) for item in due)


def due_in(kept: tuple[Kept, ...], now: datetime) -> tuple[Kept, ...]:
    """The due messages, the earliest first, at most `MOST_RELEASED`.

    If more are due, each minute takes its turn at another portion. So messages that cannot be released never block the rest.
    """
    due = sorted((item for item in kept if item.due <= now), key=lambda item: item.due)
    portions = range(0, len(due), MOST_RELEASED) or (0,)
    first = portions[int(now.timestamp() // 60) % len(portions)]
    return tuple(due[first : first + MOST_RELEASED])


def _gone(kept: Kept) -> DamagedDocument:
    return DamagedDocument(
        f"Message {kept.id} is due since {kept.due.isoformat()}, but its document {kept.tx} was not found. The message stays "
        "kept. If the error comes again, the document was deleted: restore the document from a backup, or let the entity "
        "cancel the message."
    )


def _arrival(envelope: Envelope) -> Arrival:
    """A release, as the draft takes messages. Like every message, it gets a mark, with its own key and hash."""
    named = replace(envelope, id=f"{RELEASE}{envelope.id}")
    key = key_of(named)
    return Arrival(key, message_hash(key), named, "l", envelope.since)


def _renamed(entity: EntityRef, handled: Handled, cause: str) -> Handled:
    """The released message, under an id derived from the release: so an audit can trace it to the release's mark."""
    (output,) = handled.outputs
    id = derived_id(entity, cause, 0)
    envelope = replace(Envelope.read(output.envelope.text), id=id)
    return replace(handled, outputs=(replace(output, id=id, envelope=envelope.to_json(), index=0),))
