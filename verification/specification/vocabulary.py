"""What replies mean and what is left half done: the words of the index that are written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verification.twins.all_effects import effects

NO_ANSWER_TO_READS: Final = {
    "behind": 'the replica has not reached the session token (404/1002); never "absent"',
    "unknown": "the read failed, or its reply was lost",
}
UNKNOWN_WRITE: Final = "applied, and the reply was lost; or never applied; or it may still be, at any later time"

REPLIES: Final = {
    "Begin": {"begun": "always"},
    "LoadEntity": {
        "document": "the newest version, or an earlier one if the replica lags",
        "absent": "there is none; or it was created later than this replica knows",
        "document without a ledger": "others made it; or its ledger was removed; or the version is from before its adoption",
        "damaged document": "others changed the ledger, a newer release wrote it, or it belongs to another entity type",
        **NO_ANSWER_TO_READS,
    },
    "SaveEntity": {
        "saved": "applied, on exactly the version that was loaded",
        "conflict": "somebody's save came first; or one's own, sent twice by the SDK; or the loaded version was old",
        "unknown": UNKNOWN_WRITE,
    },
    "FindProcessed": {
        "records of all": "all these messages were processed, and their outputs published",
        "not records of all": "the others were not processed, or their entries are still in the ledger, or the view is from "
        "before their records",
        **NO_ANSWER_TO_READS,
    },
    "HasRecords": {
        "yes": "the entity was processed before",
        "no": "it never was, no entry has left its ledger, or the view is old",
        **NO_ANSWER_TO_READS,
    },
    "LoadProcessed": {
        "records of all": "all these messages were processed, maybe by other attempts than those in question",
        "not records of all": "the others were not processed, or their entries are still in the ledger",
        **NO_ANSWER_TO_READS,
    },
    "WriteProcessed": {"written": "applied", "unknown": UNKNOWN_WRITE},
    "WriteOnce": {"written": "all are there", "unknown": UNKNOWN_WRITE},
    "Stage": {
        "written": "applied",
        "conflict": "one's own earlier send was applied: the transaction id is fresh",
        "conflict without a token": "the same, but what is relied on could not be told to the next reader",
        "unknown": UNKNOWN_WRITE,
    },
    "LoadStaged": {
        "staged outputs": "all are there",
        "gone": "some are not: published, and deleted since",
        **NO_ANSWER_TO_READS,
    },
    "DeleteStaged": {"done": "deleted, or not: nothing depends on it"},
    "DeleteBlobs": {"done": "deleted, or not: nothing depends on it"},
    "DeleteProcessed": {"done": "deleted, or not, or no longer as it was read: nothing depends on it"},
    "DeleteCompanions": {"done": "deleted, or not, or no longer as it was read: nothing depends on it"},
    "Park": {"written": "applied", "unknown": UNKNOWN_WRITE},
    "LoadParked": {
        "parked message": "as one replica has it, younger than the limit",
        "old parked message": "as one replica has it, older than the limit",
        "not parked": "it is not, or this replica does not know yet",
        **NO_ANSWER_TO_READS,
    },
    "DeleteParked": {"done": "deleted, or not, or parked anew since"},
    "Publish": {
        "published": "every output was taken by its queue",
        "unknown": "any of them may have arrived, or not, or may still",
    },
    "LoadCompanions": {
        "all found": "all of them are there: what they are about came before",
        "not all found": "the others are not there, were cleaned up, or the view is from before them",
        **NO_ANSWER_TO_READS,
    },
    "SaveBatch": {
        "saved": "all of it was applied, on exactly the versions that were read",
        "conflict": "none of it was: the entity or a companion was written since, by somebody else; or by oneself, as the SDK "
        "sent the batch twice; or the loaded version was old",
        "unknown": UNKNOWN_WRITE,
    },
    "ReplaceCompanions": {"done": "replaced, or not: nothing depends on it"},
    "FindOwing": {
        "records that owe": "their outputs were committed, and maybe published since",
        "none owes": "none does; or the view is from before the one that does",
        **NO_ANSWER_TO_READS,
    },
    "FindEntries": {
        "all entries": "every version asked for is there",
        "not all entries": "clean-up has taken some, or others deleted them",
        **NO_ANSWER_TO_READS,
    },
    "FindNumbered": {
        "versions": "these sent them",
        "none": "clean-up has taken their entries",
        **NO_ANSWER_TO_READS,
    },
    "HasCompanions": {
        "yes": "the entity was processed before",
        "no": "it never was, or the view is old",
        **NO_ANSWER_TO_READS,
    },
}

LEFTOVERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "committed, not published": (
        "the message is committed, and not all of its outputs have been sent",
        ("redelivery", "sweeper", "settler", "sending again"),
    ),
    "published, not marked": (
        "all outputs have been sent, and the entry or record still owes them",
        ("redelivery", "sweeper"),
    ),
    "committed, not acknowledged": (
        "nothing is owed, and only the delivery is left",
        ("redelivery", "settler", "the same again"),
    ),
    "held, not acknowledged": (
        "the message waits for those before it, and its delivery is still there",
        ("redelivery", "settler"),
    ),
    "held, could be released": (
        "nothing is missing any more before a message that is held",
        ("redelivery", "next message", "sweeper"),
    ),
    "record with its entry": (
        "the record of an entry that is still in the ledger; harmless, since both say the same",
        ("redelivery", "next message"),
    ),
    "staged, without an entry": (
        "staged outputs of a commit that did not happen, or has yet to land",
        ("clean-up",),
    ),
    "staged, its entry left": (
        "staged outputs that were published, and whose entry has left the ledger",
        ("clean-up",),
    ),
    "blob, without a commit": ("a blob of a commit that did not happen, or has yet to land", ("clean-up",)),
    "tombstone of nothing": (
        "the tombstone of an entity that never existed, from a fence; harmless",
        ("next message",),
    ),
    "parked, not acknowledged": (
        "the message is parked, and its last delivery is still there",
        ("the same again",),
    ),
    "sent again, still parked": (
        "the message was sent, and its parked document is still there",
        ("the same again",),
    ),
}
"""What half-done work is called, what it is, and who finishes it: in each protocol one of these does."""

FINISHERS: Final = {
    "redelivery": "redelivery",
    "next message": "the next message on the entity",
    "sweeper": "the sweeper",
    "settler": "the settler (where the host gives up on the delivery)",
    "sending again": "sending again (of a stream)",
    "clean-up": "clean-up",
    "the same again": "the settler or the operator, asked again",
}


def request(name: str) -> str:
    """What an effect asks for: the beginning of its docstring."""
    kind = getattr(effects, name)
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
