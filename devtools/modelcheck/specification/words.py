"""What is written by hand about each step: a title, when it is taken, and why. Everything else on the pages is found.

Keys are those of `places`, or their ends: of two that fit, the longer one counts. A test sees to it that each step has a
sentence and each sentence a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Words:
    """About one step: what it is called, when it is taken, and why it is as it is."""

    title: str
    when: str
    why: str


STEPS: Final = {
    "_look: LoadEntity": Words(
        "Load the entity",
        "at the beginning, where the ledger keeps everything",
        "Nothing leaves such a ledger, so there is hardly ever a record to look for.",
    ),
    "_look: LoadEntity + FindProcessed": Words(
        "Load the entity, and look for records",
        "at the beginning, where the ledger has a window",
        "The ledger knows the latest transactions, records those that left it. Asked side by side they cost one round trip; "
        "whether that view of the records was new enough is seen from the ledger's session token.",
    ),
    "never_had_a_ledger: HasRecords": Words(
        "Ask whether the entity has records",
        "when the document has no ledger",
        "A document that others made may be adopted. But where records exist, its ledger was removed, or the view is older "
        "than the ledger.",
    ),
    "never_had_a_ledger: SaveEntity": Words(
        "Fence: save the document as it was loaded",
        "when the document has no ledger, although records exist",
        "If it is saved, the view was current: somebody removed the ledger, and late duplicates would be applied again. If "
        "not, the view proves nothing.",
    ),
    "attempt/_look: FindProcessed": Words(
        "Look for records again, at the ledger's session token",
        "when a message is not in the ledger, entries have left it, and the view of the records may be older than the ledger",
        "Records are written before the commit that drops their entries, so a view at the ledger's token has all that the "
        "ledger relies on. An older one could miss a record, and the message would be applied a second time.",
    ),
    "attempt/publish_owed: LoadStaged": Words(
        "Read what duplicates staged",
        "when a message is in the ledger, and its outputs, still owed, were staged",
        "What is gone was published: staged outputs are deleted only after the commit that dropped their entry, or behind a "
        "fence, so only an old view of the entity leads here.",
    ),
    "attempt/publish_owed: Publish": Words(
        "Publish what duplicates owe",
        "when a message is in the ledger, and its entry owes outputs that this process does not know to be published",
        "The attempt that committed it may have died before it published. Copies do no harm: their ids are the same.",
    ),
    "attempt: Begin": Words(
        "Begin, and handle the messages",
        "when a message is neither in the ledger nor on record",
        "Time and transaction ids are all that comes from outside. Ids are fresh for every message of every attempt, so "
        "what a lost attempt left can never be taken for this one's. A message whose handler raises, or whose result does "
        "not fit, drops out and takes no other along.",
    ),
    "_commit/publish_owed: LoadStaged": Words(
        "Read what leaving entries staged",
        "when there is no room in the window, so all its entries leave, and one of them owes outputs that were staged",
        "As for duplicates, what is gone was published.",
    ),
    "_commit/publish_owed: Publish": Words(
        "Publish what leaving entries owe",
        "when entries leave, and one of them owes outputs that this process does not know to be published",
        "A record has no room for outputs: an entry that left could never be finished by anybody.",
    ),
    "_write_apart: WriteProcessed": Words(
        "Write the records of leaving entries",
        "when entries leave",
        "Before the commit that drops them, so that at every moment an entry or a record knows the message. Records are "
        "upserts: writing them twice is no conflict.",
    ),
    "_write_apart: Stage": Words(
        "Stage large outputs",
        "when outputs of a message are over the inline limit",
        "Before the commit, so that a committed entry can always be published. A conflict can only be this attempt's own "
        "earlier send, since the transaction id is fresh.",
    ),
    "_commit: SaveEntity": Words(
        "Commit: save the entity if unchanged",
        "when a message was handled",
        "State, entries and small outputs in one conditional save, which also marks what this process published, drops what "
        "leaves and carries the session token of what was written apart. Whoever committed in between changed the ETag. "
        "Nothing is undone if it fails: it may still land.",
    ),
    "_commit: Publish": Words(
        "Publish the outputs",
        "when what was committed has outputs",
        "After the commit, so that nothing is published that was not committed; before the messages are acknowledged, so "
        "that nothing is lost.",
    ),
    "_commit: DeleteStaged": Words(
        "Delete what leaving entries staged",
        "when an entry left that had staged outputs",
        "After the commit that dropped the entry: nobody needs them any more.",
    ),
    "mark: LoadEntity": Words(
        "Load the entity",
        "when an entity falls quiet, and the process that published does not have the document any more",
        "The document still says that something is owed.",
    ),
    "mark: SaveEntity": Words(
        "Mark: save the entity if unchanged",
        "when the ledger still owes what this process published",
        "It keeps the sweeper and duplicates from publishing it again. If another commit came first, there is a new version "
        "to look at.",
    ),
    "look: LoadEntity": Words("Load the entity", "at the beginning", "The ledger knows the latest transactions."),
    "sweep/publish_owed: LoadStaged": Words(
        "Read what owing entries staged",
        "when an entry owes outputs that were staged",
        "What is gone was published: staged outputs outlive their entry, or go behind a fence.",
    ),
    "sweep/publish_owed: Publish": Words(
        "Publish what the entity owes",
        "when an entry owes outputs",
        "Even an old view tells of commits only: publishing what it owes makes copies at most.",
    ),
    "sweep: SaveEntity": Words(
        "Mark: save the entity if unchanged",
        "when everything owed is published",
        "Conditional on the version that was loaded: whoever commits in between knows better.",
    ),
    "_known/publish_owed: LoadStaged": Words(
        "Read what the message staged",
        "when the message is in the ledger, and its outputs, still owed, were staged",
        "What is gone was published: staged outputs outlive their entry, or go behind a fence.",
    ),
    "_known/publish_owed: Publish": Words(
        "Publish what the message owes",
        "when the message is in the ledger, and its entry owes outputs",
        "It was processed, and only its outputs are missing. Whoever comes next marks it.",
    ),
    "_known: FindProcessed": Words(
        "Look for a record, at the ledger's session token",
        "when the message is not in the ledger",
        "A view at that token has every record that the ledger relies on.",
    ),
    "settle/park/fence: SaveEntity": Words(
        "Fence: save the entity unchanged, or a tombstone if it is absent",
        "when there is neither an entry nor a record",
        "An old view, or a commit that has yet to land, looks just the same. If it is saved, the view was current, and "
        "every commit still under way will fail.",
    ),
    "settle/park: Begin": Words(
        "Ask for the time", "when the fence holds", "The parked document tells when it was parked."
    ),
    "settle/park: Park": Words(
        "Park the message",
        "when the fence holds",
        "It was never processed, and no copy delivered so far can be any more. It is kept, body and all, until its cause is "
        "mended. An upsert: if it comes back, its document gets a new ETag.",
    ),
    "requeue: LoadParked": Words("Read the parked message", "at the beginning", "Its body lies there."),
    "requeue: Publish": Words(
        "Send the message again",
        "when it is younger than the limit",
        "With the identity it has: if it was processed meanwhile, it is a duplicate and is dropped. An older one might be a "
        "copy of a message whose record is gone.",
    ),
    "requeue: DeleteParked": Words(
        "Delete the parked document, as it was read",
        "when the message was sent",
        "After sending, so that it is never nowhere; as it was read, so that one parked anew stays.",
    ),
    "clean_staged/fence: SaveEntity": Words(
        "Fence: save the entity unchanged, or a tombstone if it is absent",
        "when no entry names a candidate",
        "The commit that names it might have yet to land. If the fence is saved, it never will: the attempt loaded an older "
        "version.",
    ),
    "clean_staged: DeleteStaged": Words(
        "Delete the staged outputs",
        "when the fence holds",
        "No entry names them, nor ever will. What remains, best effort, is a candidate next time.",
    ),
    "clean_processed: DeleteProcessed": Words(
        "Delete records older than the retention, as they were read",
        "at the beginning, if there are candidates",
        "No copy of their messages can still arrive. A record that is being written anew has another ETag, and stays; if it "
        "is deleted first, writing creates it.",
    ),
}


def words_of(key: str) -> str:
    """Which key of `STEPS` a step's words have: the longest that its own ends with."""
    return max((known for known in STEPS if f"/{key}".endswith(f"/{known}")), key=len, default=f"no words for {key}")
