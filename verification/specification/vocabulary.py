"""The handwritten words of the index: meanings of replies, and kinds of half-done work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verification.twins.all_effects import effects

NO_ANSWER_TO_READS: Final = {
    "behind": 'the replica has not reached the session token (404/1002); never "absent"',
    "unknown": "the read failed, or its reply was lost",
}
UNKNOWN_WRITE: Final = "applied without a reply; or never applied; or applied at any later time"

REPLIES: Final = {
    "Begin": {"begun": "always"},
    "LoadEntity": {
        "document": "the newest version, or an earlier one if the replica lags",
        "absent": "the entity does not exist; or the replica lags behind its creation",
        "document without a ledger": "another program wrote it or removed its ledger; or the version precedes its adoption",
        "damaged document": "another program or a newer release wrote the ledger, or its entity type is another",
        **NO_ANSWER_TO_READS,
    },
    "SaveEntity": {
        "saved": "applied to exactly the loaded version",
        "conflict": "another save came first; or this one, which the SDK sent twice; or the loaded version was old",
        "unknown": UNKNOWN_WRITE,
    },
    "OpenNumbers": {
        "opened": "the numbers are fresh, and the store has the book",
        "unknown": "the store may lack the book: its writing was not answered",
    },
    "FindPaid": {
        "all of them": "their outputs were sent, or nothing is asked for",
        "not all of them": "the others were not; or by a process that died before it wrote its book; or no book could be read",
    },
    "CloseNumbers": {"done": "the process knows it; its book says so once it is written, or never if the process dies"},
    "HasPages": {
        "yes": "the entity was processed before",
        "no": "it was not, or no mark has left its ledger, or the view is old",
        **NO_ANSWER_TO_READS,
    },
    "FindPages": {
        "with the newest page": "the pages that may know the messages are there, as far as they were not cleaned up",
        "without the newest page": "clean-up deleted it, or somebody else; or nothing has left the ledger",
        **NO_ANSWER_TO_READS,
    },
    "WritePage": {
        "written": "applied; or an attempt on the same ledger had written the same page",
        "another page": "the entity was put back to an earlier version: the page is of its other history",
        "unknown": UNKNOWN_WRITE,
    },
    "FindPagesAbove": {
        "pages": "they are of another history of the entity, if the fence holds",
        "none": "they were deleted since",
        **NO_ANSWER_TO_READS,
    },
    "DeletePages": {"done": "deleted, or not, or changed since it was read: nothing depends on it"},
    "FindBlobs": {
        "all of them": "all these transactions were committed, or will be",
        "not all of them": "the others were not, or the ledger names them still",
        **NO_ANSWER_TO_READS,
    },
    "WriteOnce": {"written": "all exist", "unknown": UNKNOWN_WRITE},
    "Stage": {
        "written": "applied",
        "conflict": "an earlier send of this request was applied, since the transaction id is fresh",
        "conflict without a token": "the same, but without a token for later reads",
        "unknown": UNKNOWN_WRITE,
    },
    "LoadStaged": {
        "kept messages": "all exist",
        "gone": "some do not: released or cancelled, and cleaned up since; or somebody deleted them",
        **NO_ANSWER_TO_READS,
    },
    "DeleteStaged": {"done": "deleted, or not: nothing depends on it"},
    "DeleteBlobs": {"done": "deleted, or not: nothing depends on it"},
    "DeleteCompanions": {"done": "deleted, or not, or changed since it was read: nothing depends on it"},
    "Park": {"written": "applied", "unknown": UNKNOWN_WRITE},
    "LoadParked": {
        "parked message": "as one replica has it, younger than the limit",
        "old parked message": "as one replica has it, older than the limit",
        "not parked": "it is not, or the replica lags",
        **NO_ANSWER_TO_READS,
    },
    "OpenRequest": {
        "written": "applied",
        "conflict": "an earlier send of this request was applied, since the id is fresh",
        "conflict without a token": "the same, but without a token for later reads",
        "unknown": UNKNOWN_WRITE,
    },
    "LoadRequests": {
        "answered": "all of them were carried out, and their answers kept",
        "open": "they were opened, and have no answer yet",
        "gone": "their callers closed them, or clean-up deleted them",
        **NO_ANSWER_TO_READS,
    },
    "KeepAnswers": {"written": "each request has its answer, or is gone", "unknown": UNKNOWN_WRITE},
    "CloseRequest": {"closed": "it is gone", "unknown": UNKNOWN_WRITE},
    "DeleteRequests": {"done": "deleted, or not, or answered since it was read: nothing depends on it"},
    "Unpark": {"done": "a note has taken its place, or not, or it was parked anew since"},
    "Publish": {
        "published": "every queue accepted its outputs",
        "unknown": "each of them may have arrived, or not, or may still arrive",
    },
    "LoadCompanions": {
        "all found": "all of them exist, so their messages came before",
        "not all found": "the others do not exist, were cleaned up, or the view precedes them",
        **NO_ANSWER_TO_READS,
    },
    "SaveBatch": {
        "saved": "all of it was applied to exactly the versions read",
        "conflict": "none of it was applied: another attempt has written the entity or a companion; or this batch was applied, "
        "and the SDK sent it twice; or the loaded version was old",
        "unknown": UNKNOWN_WRITE,
    },
    "ReplaceCompanions": {"done": "replaced, or not: nothing depends on it"},
    "FindOwing": {
        "records that owe": "their outputs were committed, and maybe published since",
        "none owes": "none does; or the view precedes the one that does",
        **NO_ANSWER_TO_READS,
    },
    "FindEntries": {
        "all entries": "every version has an entry",
        "not all entries": "clean-up or another program deleted some",
        **NO_ANSWER_TO_READS,
    },
    "FindNumbered": {
        "versions": "their outputs have these numbers",
        "none": "clean-up deleted their entries",
        **NO_ANSWER_TO_READS,
    },
    "HasCompanions": {
        "yes": "the entity was processed before",
        "no": "it was not, or the view is old",
        **NO_ANSWER_TO_READS,
    },
}

FREE: Final = frozenset({"Begin", "OpenNumbers", "FindPaid", "CloseNumbers"})
"""Requests that are none of the store."""

LEFTOVERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "committed, not published": (
        "not all outputs have been sent, or the answer is not kept; an outbox owes them under a number that no book proves",
        ("redelivery", "sweeper", "settler", "sending again"),
    ),
    "published, not proved": (
        "all outputs have been sent, and no book proves that: the entry owes until somebody pays it again",
        ("redelivery", "sweeper"),
    ),
    "published, still owed": (
        "all outputs have been sent, and the record still owes them",
        ("redelivery", "sweeper"),
    ),
    "committed, not acknowledged": (
        "nothing is owed, and the delivery is left",
        ("redelivery", "settler"),
    ),
    "held, not acknowledged": (
        "the message waits for earlier ones, and the delivery is left",
        ("redelivery", "settler"),
    ),
    "held, could be released": (
        "a held message misses no earlier ones",
        ("redelivery", "next message", "sweeper"),
    ),
    "page, without a commit": (
        "a page of marks that are still in the ledger; harmless, since the commit that drops them writes the same",
        ("next message",),
    ),
    "staged, not kept": (
        "messages of a commit that was not applied, or will be; or released or cancelled since; or a token was wanted",
        ("clean-up",),
    ),
    "blob, without a commit": ("a blob of a commit that was not applied, or will be", ("clean-up",)),
    "tombstone of nothing": (
        "the tombstone of an entity that never existed, from a fence; harmless",
        ("next message",),
    ),
    "parked, not acknowledged": (
        "the message is parked, and its last delivery is left",
        ("the same again",),
    ),
    "sent again, still parked": (
        "the message was sent, and its parked document is left",
        ("the same again",),
    ),
}
"""Kinds of half-done work, with their meaning and finishers; in each protocol one of these finishes it."""

FINISHERS: Final = {
    "redelivery": "redelivery",
    "next message": "the next message on the entity",
    "sweeper": "the sweeper (which searches for all that no book of a process at work proves)",
    "settler": "the settler (if the host gives up the delivery)",
    "sending again": "replay (of a stream)",
    "clean-up": "clean-up",
    "the same again": "the next run of the settler or of the operator's command",
}


def request(name: str) -> str:
    """What an effect asks for: the beginning of its docstring."""
    kind = getattr(effects, name)
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
