"""Mutants that the checker does not find, each with the reason why it is harmless. Reviewed by hand."""

from __future__ import annotations

from typing import Final

from tests.model.harmless_mutants_beside import LISTED

_LISTED: Final = """
An entry that owes nothing has no outputs to publish; its transaction is only remembered as published once more.
    outbox.publish_owed: 'entry.owed is not None and entry.tx not in view.memory.published' without 'entry.owed is not None'
Only the type checker asks: an absent entity is read as an empty ledger, which owes nothing.
    settling.sweep: 'view.document is None or not view.ledger.owing' without 'view.document is None'
Only the type checker asks: a parked document, its ETag and the store's present are absent together.
    settling.requeue: 'found.message is None or found.etag is None or found.now is None' without 'found.message is None'
    settling.requeue: 'found.message is None or found.etag is None or found.now is None' without 'found.etag is None'
    settling.requeue: 'found.message is None or found.etag is None or found.now is None' without 'found.now is None'
    settling.renew: 'parked is None or found.now is None' without 'parked is None'
    settling.renew: 'parked is None or found.now is None' without 'found.now is None'
Only the type checker asks: whatever has no ledger is a document, since an absent one is read as an empty ledger.
    outbox.never_had_a_ledger: 'recorded is True and loaded.document is not None' without 'loaded.document is not None'
No window, no search for records and so no token of one: what is kept here is not used before the preset is exchanged.
    outbox._look: 'found.token or memory.library_token' without 'memory.library_token'
Where nothing was committed the saved document is kept too long at worst, which costs marking one conflict.
    outbox.attempt: 'view.unmarked()' left at 'view.memory' (place 2)
Only the type checker asks: document and ETag are absent together, and an absent document is read as one that owes nothing.
    outbox.mark: condition 'loaded.document is None or loaded.etag is None' forced False
    outbox.mark: 'loaded.document is None or loaded.etag is None' without 'loaded.document is None'
    outbox.mark: 'loaded.document is None or loaded.etag is None' without 'loaded.etag is None'
Only the type checker asks: where an entry was drafted, a message was handled.
    drafting.next_ledger: 'draft.handled is not None and draft.handled.deleted' without 'draft.handled is not None'
    drafting._fitting: condition 'draft.handled is None' forced False
    drafting.document: condition 'self.handled is None' forced False
Only the type checker asks: what owes something was loaded or saved, and so has a document and an ETag.
    drafting.remembering: 'unmarked and document is not None and (etag is not None)' without 'document is not None'
    drafting.remembering: 'unmarked and document is not None and (etag is not None)' without 'etag is not None'
Only the type checker asks: every entry has been dated one line above.
    drafting._trimmed: 'entry.seen or now' without 'now'
Both limits are round numbers below the service's own; one byte or one kilobyte more is as good.
    drafting._fitting: '_size_of(draft.sequences) + _LEDGER_FRAME_BYTES' without '_LEDGER_FRAME_BYTES'
    drafting._fitting: 'before + added > MAX_DOCUMENT_BYTES' turned into 'before + added >= MAX_DOCUMENT_BYTES'
    drafting._fitting: 'size > MAX_DOCUMENT_BYTES' turned into 'size >= MAX_DOCUMENT_BYTES'
That no entries leave is the same as that all of none leave: no record is written for them.
    drafting._fitting: 'limits.window is not None and view.ledger.entries' without 'view.ledger.entries'
Looked at again for each message of a group, which only grows; where a smaller state makes room, the entries may stay.
    drafting._adding: 'Draft(handled=handled, body=None if handled.deleted else handled.body, …' without 'flush'
    drafting._fitting: 'flush or crowded or before + added > MAX_DOCUMENT_BYTES' without 'flush'
"""


def _listed() -> dict[str, str]:
    found: dict[str, str] = {}
    reason = ""
    for line in (*_LISTED.strip().splitlines(), *LISTED.strip().splitlines()):
        if line.startswith(" "):
            found[line.strip()] = reason
        else:
            reason = line
    return found


HARMLESS: Final = _listed()
"""Name to reason."""
