"""Looking in the library's partition for what has left the ledger."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from exactlyonce.attempt import Again
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import FindChannels, FindProcessed, Found
from exactlyonce.effects.requests import FoundRequests
from exactlyonce.protocols.outbox.answers import with_answers
from exactlyonce.protocols.outbox.judge import Arrived, unknown_channels
from exactlyonce.protocols.outbox.opened import look_for_requests
from exactlyonce.protocols.steps.load import View
from exactlyonce.values.identity import EntityRef
from exactlyonce.values.session_tokens import at_or_after

_BEHIND: Final = (
    "no replica of the library's container is at the session token of the ledger (if this stays: was that container, or the "
    "account, exchanged or restored?)"
)


def look_apart(
    entity: EntityRef, messages: Arrived, view: View, found: Found, opened: FoundRequests | None = None
) -> Step[View | Again]:
    """Look in the library's partition at the ledger's session token, where the ledger relies on it. At most 4 effects.

    Args:
        entity: that was loaded.
        messages: of the attempt.
        view: of the entity.
        found: the messages that have records, in a view of any age.
        opened: the documents of its opened requests, as `look_for_requests` takes them.
    """
    ledger = view.ledger
    known = {entry.message for entry in ledger.entries}
    unseen = tuple(key for key in messages.foreign if key not in known)
    if unseen and ledger.apart.records and not at_or_after(found.token, ledger.token):
        # Look for records again, at the ledger's session token. Records are written before the commit that drops their
        # entries, so a view at that token has all of them.
        again = yield from FindProcessed(entity, unseen, ledger.token)
        if isinstance(again, NoAnswer):
            return Again(view.memory, _BEHIND)
        found = again
    # A record means done: it was written after publishing, so its message needs nothing more.
    view = replace(view, done=found.messages)
    looked = yield from with_answers(entity, messages, view, found.token)
    if isinstance(looked, Again):
        return looked
    looked = yield from look_for_requests(entity, messages, looked, opened)
    if isinstance(looked, Again):
        return looked
    outcome = yield from look_for_channels(entity, messages, looked)
    return outcome


def look_for_channels(entity: EntityRef, messages: Arrived, view: View) -> Step[View | Again]:
    """Look for the channels of messages that are not in the ledger, if any have left it. At most one effect.

    The view may be one that this process remembers. What documents say was committed, whatever the ledger is by now.
    """
    ledger = view.ledger
    left = unknown_channels(messages, view) if ledger.apart.channels else ()
    if left:
        # Find the documents of channels that are not in the ledger, at its session token. They are written before the
        # commit that drops the channels, so a view at that token has all of them.
        documents = yield from FindChannels(entity, left, ledger.token)
        if isinstance(documents, NoAnswer):
            return Again(view.memory, _BEHIND)
        view = replace(view, channels=tuple(one for one in documents.documents if one.counts(ledger.apart)))
    return view
