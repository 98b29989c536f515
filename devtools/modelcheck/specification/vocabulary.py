"""What requests and replies mean, what is left half done, and how attempts end: in words, by hand."""

from __future__ import annotations

from typing import Final

REQUESTS: Final = {
    "Begin": "ask for the present and for transaction ids never given out before; no request to the store",
    "LoadEntity": "read the entity document; at or after a session token, if one is known",
    "SaveEntity": "replace the entity document if its ETag is still the one that was loaded; create it if it was absent",
    "FindProcessed": "read which of these messages have processed records; at or after a session token, if one is known",
    "HasRecords": "read whether the entity has any processed record, in whatever view answers",
    "WriteProcessed": "upsert processed records",
    "Stage": "create documents with staged outputs",
    "LoadStaged": "read staged outputs at or after the ledger's session token",
    "DeleteStaged": "delete staged outputs, best effort",
    "DeleteProcessed": "delete processed records that are as they were read, best effort",
    "Park": "upsert a parked message",
    "LoadParked": "read a parked message",
    "DeleteParked": "delete a parked message that is as it was read, best effort",
    "Publish": "hand outputs to their queues",
}

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
    "WriteProcessed": {"written": "applied", "unknown": UNKNOWN_WRITE},
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
    "DeleteProcessed": {"done": "deleted, or not, or no longer as it was read: nothing depends on it"},
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
}

LEFTOVERS: Final = {
    "committed, not published": "the entry owes its outputs, and not all of them have been sent",
    "published, not marked": "the entry says that it owes outputs, although all have been sent",
    "committed, not acknowledged": "the entry owes nothing, and only the delivery is left",
    "record beside its entry": "the record of an entry that is still in the ledger; harmless, since both say the same",
    "staged, without an entry": "staged outputs of a commit that did not happen, or has yet to land",
    "staged, its entry left": "staged outputs that were published, and whose entry has left the ledger",
    "tombstone of nothing": "the tombstone of an entity that never existed, from a fence; harmless",
    "parked, not acknowledged": "the message is parked, and its last delivery is still there",
    "sent again, still parked": "the message was sent, and its parked document is still there",
}

FINISHERS: Final = {
    "redelivery": "redelivery",
    "next message": "the next message on the entity",
    "more messages": "later messages on it, once the window is full",
    "sweeper": "the sweeper",
    "clean-up": "clean-up",
    "the same again": "the same, asked for again",
}

OUTCOMES: Final = {
    "finished": "Finished",
    "again": "Again",
    "raises": "Raises",
}
