"""What the outbox keeps in the library's partition: written before the commit that relies on it, deleted after it."""

from __future__ import annotations

from exactlyonce.attempt import Again
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import DeleteChannels, DeleteStaged, Stage, WriteRecords
from exactlyonce.protocols.outbox.draft import Draft, records_of
from exactlyonce.protocols.steps.load import View
from exactlyonce.protocols.steps.save import write_blobs
from exactlyonce.records.ledger import Ledger
from exactlyonce.values.identity import EntityRef


def write_apart(entity: EntityRef, view: View, draft: Draft) -> Step[str | Again | None]:
    """Write what lies elsewhere before the commit that relies on it; return the token of the library's partition for it."""
    token = view.ledger.token
    records = records_of(entity, view, draft)
    if records:
        # Write what leaves the ledger: records of entries, documents of channels. Before the commit that drops them, so that
        # the ledger or the library's partition always knows the message.
        recorded = yield from WriteRecords(entity, records)
        if isinstance(recorded, NoAnswer):
            return Again(view.memory, "whether the records were written is not known")
        token = recorded.token
    if draft.staged:
        # Stage large outputs, and messages to keep. Before the commit, so that what is committed can always be published. A
        # conflict is this attempt's own earlier send, since transaction ids are fresh; its token counts like any other.
        staged = yield from Stage(entity, draft.staged)
        if isinstance(staged, NoAnswer) or staged.token is None:
            return Again(view.memory, "whether the outputs were staged is not known")
        token = staged.token
    kept = yield from write_blobs(draft.blobs, view.memory)
    return kept or token


def delete_superseded(entity: EntityRef, view: View, ledger: Ledger) -> Step[None]:
    """Delete what this commit made superfluous. At most 2 effects, which are not answered."""
    yield from delete_staged(entity, view.ledger, ledger)
    back = {channel.id for channel in ledger.channels}
    superseded = tuple(document.name for document in view.channels if document.channel.id in back)
    if superseded:
        # Delete the documents of channels that came back. The ledger knows all that they say.
        yield from DeleteChannels(entity, superseded)


def delete_staged(entity: EntityRef, before: Ledger, after: Ledger) -> Step[None]:
    """Delete what dropped entries staged. At most one effect, which is not answered."""
    staged = (*(entry.tx for entry in before.entries if entry.staged), *dict.fromkeys(one.tx for one in before.kept))
    named = after.transactions
    garbage = tuple(tx for tx in staged if tx not in named)
    if garbage:
        # Delete what dropped entries staged, and kept messages that were released or cancelled. Nothing names it any more.
        yield from DeleteStaged(entity, garbage)
