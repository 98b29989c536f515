"""The words about the steps of the outbox, of finishing what others left, and of clean-up."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.specification.vocabulary import Words

APART: Final = {
    "outbox._look: LoadEntity": Words(
        "Load the entity",
        "at the beginning, where the ledger keeps everything",
        "Nothing leaves such a ledger, so there is hardly ever a record to look for.",
    ),
    "outbox._look: LoadEntity + FindProcessed": Words(
        "Load the entity, and look for records",
        "at the beginning, where the ledger has a window",
        "The ledger knows the latest transactions, records those that left it. Asked side by side they cost one round trip; "
        "whether that view of the records was new enough is seen from the ledger's session token.",
    ),
    "outbox.never_had_a_ledger: HasRecords": Words(
        "Ask whether the entity has records",
        "when the document has no ledger",
        "A document that others made may be adopted. But where records exist, its ledger was removed, or the view is older "
        "than the ledger.",
    ),
    "outbox.never_had_a_ledger: SaveEntity": Words(
        "Fence: save the document as it was loaded",
        "when the document has no ledger, although records or companions exist",
        "If it is saved, the view was current: somebody removed the ledger, and late duplicates would be applied again. If "
        "not, the view proves nothing.",
    ),
    "outbox.attempt/outbox._look: FindProcessed": Words(
        "Look for records again, at the ledger's session token",
        "when a message is not in the ledger, entries have left it, and the view of the records may be older than the ledger",
        "Records are written before the commit that drops their entries, so a view at the ledger's token has all that the "
        "ledger relies on. An older one could miss a record, and the message would be applied a second time.",
    ),
    "outbox.attempt/outbox.publish_owed: LoadStaged": Words(
        "Read what duplicates staged",
        "when a message is in the ledger, and its outputs, still owed, were staged",
        "What is gone was published: staged outputs are deleted only after the commit that dropped their entry, or behind a "
        "fence, so only an old view of the entity leads here.",
    ),
    "outbox.attempt/outbox.publish_owed: Publish": Words(
        "Publish what duplicates owe",
        "when a message is in the ledger, and its entry owes outputs that this process does not know to be published",
        "The attempt that committed it may have died before it published. Copies do no harm: their ids are the same.",
    ),
    "outbox.attempt: Begin": Words(
        "Begin, and handle the messages",
        "when a message is neither in the ledger nor on record",
        "Time and transaction ids are all that comes from outside. Ids are fresh for every message of every attempt, so "
        "what a lost attempt left can never be taken for this one's. A message whose handler raises, or whose result does "
        "not fit, drops out and takes no other along.",
    ),
    "outbox._commit/outbox.publish_owed: LoadStaged": Words(
        "Read what leaving entries staged",
        "when there is no room in the window, so all its entries leave, and one of them owes outputs that were staged",
        "As for duplicates, what is gone was published.",
    ),
    "outbox._commit/outbox.publish_owed: Publish": Words(
        "Publish what leaving entries owe",
        "when entries leave, and one of them owes outputs that this process does not know to be published",
        "A record has no room for outputs: an entry that left could never be finished by anybody.",
    ),
    "outbox._write_apart: WriteProcessed": Words(
        "Write the records of leaving entries",
        "when entries leave",
        "Before the commit that drops them, so that at every moment an entry or a record knows the message. Records are "
        "upserts: writing them twice is no conflict.",
    ),
    "outbox._write_apart: Stage": Words(
        "Stage large outputs",
        "when outputs of a message are over the inline limit",
        "Before the commit, so that a committed entry can always be published. A conflict can only be this attempt's own "
        "earlier send, since the transaction id is fresh.",
    ),
    "outbox.write_blobs: WriteOnce": Words(
        "Write blobs",
        "when a handler writes blobs, or an output is too large for its queue",
        "Before the commit, so that whoever learns an address finds the blob. Names carry the transaction id, which is fresh: "
        "one that exists was written by an earlier send of the same request.",
    ),
    "outbox._commit: SaveEntity": Words(
        "Commit: save the entity if unchanged",
        "when a message was handled",
        "State, entries and small outputs in one conditional save, which also marks what this process published, drops what "
        "leaves and carries the session token of what was written apart. Whoever committed in between changed the ETag. "
        "Nothing is undone if it fails: it may still land.",
    ),
    "outbox._commit: Publish": Words(
        "Publish the outputs",
        "when what was committed has outputs",
        "After the commit, so that nothing is published that was not committed; before the messages are acknowledged, so "
        "that nothing is lost.",
    ),
    "outbox._commit: DeleteStaged": Words(
        "Delete what leaving entries staged",
        "when an entry left that had staged outputs",
        "After the commit that dropped the entry: nobody needs them any more.",
    ),
    "outbox.mark: LoadEntity": Words(
        "Load the entity",
        "when an entity falls quiet, and the process that published does not have the document any more",
        "The document still says that something is owed.",
    ),
    "outbox.mark: SaveEntity": Words(
        "Mark: save the entity if unchanged",
        "when the ledger still owes what this process published",
        "It keeps the sweeper and duplicates from publishing it again. If another commit came first, there is a new version "
        "to look at.",
    ),
    "fencing.look: LoadEntity": Words(
        "Load the entity", "at the beginning", "The ledger knows the latest transactions."
    ),
    "settling.sweep/outbox.publish_owed: LoadStaged": Words(
        "Read what owing entries staged",
        "when an entry owes outputs that were staged",
        "What is gone was published: staged outputs outlive their entry, or go behind a fence.",
    ),
    "settling.sweep/outbox.publish_owed: Publish": Words(
        "Publish what the entity owes",
        "when an entry owes outputs",
        "Even an old view tells of commits only: publishing what it owes makes copies at most.",
    ),
    "settling.sweep: SaveEntity": Words(
        "Mark: save the entity if unchanged",
        "when everything owed is published",
        "Conditional on the version that was loaded: whoever commits in between knows better.",
    ),
    "settling._known/outbox.publish_owed: LoadStaged": Words(
        "Read what the message staged",
        "when the message is in the ledger, and its outputs, still owed, were staged",
        "What is gone was published: staged outputs outlive their entry, or go behind a fence.",
    ),
    "settling._known/outbox.publish_owed: Publish": Words(
        "Publish what the message owes",
        "when the message is in the ledger, and its entry owes outputs",
        "It was processed, and only its outputs are missing. Whoever comes next marks it.",
    ),
    "settling._known: FindProcessed": Words(
        "Look for a record, at the ledger's session token",
        "when the message is not in the ledger",
        "A view at that token has every record that the ledger relies on.",
    ),
    "settling.park/fencing.fence: SaveEntity": Words(
        "Fence: save the entity unchanged, or a tombstone if it is absent",
        "when there is neither an entry nor a record",
        "An old view, or a commit that has yet to land, looks just the same. If it is saved, the view was current, and "
        "every commit still under way will fail.",
    ),
    "settling.park: Begin": Words(
        "Ask for the time", "when the fence holds", "The parked document tells when it was parked."
    ),
    "settling.park: Park": Words(
        "Park the message",
        "when the fence holds",
        "It was never processed, and no copy delivered so far can be any more. It is kept, body and all, until its cause is "
        "mended. An upsert: if it comes back, its document gets a new ETag.",
    ),
    "settling.requeue: LoadParked": Words("Read the parked message", "at the beginning", "Its body lies there."),
    "settling.requeue: Publish": Words(
        "Send the message again",
        "when it is younger than the limit",
        "With the identity it has: if it was processed meanwhile, it is a duplicate and is dropped. An older one might be a "
        "copy of a message whose record is gone. One that was made a new message goes by its new identity.",
    ),
    "settling.requeue: DeleteParked": Words(
        "Delete the parked document, as it was read",
        "when the message was sent",
        "After sending, so that it is never nowhere; as it was read, so that one parked anew stays.",
    ),
    "settling.renew: LoadParked": Words(
        "Read the parked message", "at the beginning", "Its age is its own time against the store's."
    ),
    "settling.renew: Park": Words(
        "Write that it is a new message",
        "when it is older than the limit",
        "Before anything is sent, so that whoever is asked again after a crash sends a copy of the same message.",
    ),
    "returning.give_back: Begin": Words("Begin", "at the beginning", "For the id of what is written next."),
    "returning.give_back: Stage": Words(
        "Write a document that nobody asks for",
        "then",
        "For the session token of the reply: a view at it holds whatever was parked before, however stale the replicas are.",
    ),
    "returning.give_back: LoadParked": Words(
        "Read whether the message is parked",
        "then",
        "With the token of that write. What is parked says that it was never processed, so it is not sent.",
    ),
    "returning.give_back: DeleteStaged": Words(
        "Delete the document",
        "when it was written",
        "Its token is all that was wanted. Clean-up takes what remains.",
    ),
    "returning.send: Publish": Words(
        "Send the message to its queue",
        "when it is not parked, or cannot have been",
        "With the identity and the time it has, so it is a copy like any other.",
    ),
    "retention.clean_staged/fencing.fence: SaveEntity": Words(
        "Fence: save the entity unchanged, or a tombstone if it is absent",
        "when no entry names a candidate",
        "The commit that names it might have yet to land. If the fence is saved, it never will: the attempt loaded an older "
        "version.",
    ),
    "retention.clean_staged: DeleteStaged": Words(
        "Delete the staged outputs",
        "when the fence holds",
        "No entry names them, nor ever will. What remains, best effort, is a candidate next time.",
    ),
    "retention._committed: LoadProcessed": Words(
        "Read the records of the messages that blobs were written for",
        "on the outbox, when the ledger does not name a candidate's attempt",
        "The attempt was committed if the record has its transaction id. It is there before its entry leaves, in any view at "
        "the ledger's token.",
    ),
    "retention._committed: LoadBeside": Words(
        "Read what tells of the messages that blobs were written for",
        "where records or entries lie beside the entity, or documents of numbers",
        "The attempt was committed if one has its transaction id, in a view as new as the entity's. The document of a number "
        "has the time of the attempt in its place.",
    ),
    "retention.clean_blobs/fencing.fence: SaveEntity": Words(
        "Fence: save the entity unchanged, or a tombstone if it is absent",
        "when nothing tells of a candidate's attempt",
        "Its commit might have yet to land. If the fence is saved, it never will.",
    ),
    "retention.clean_blobs: DeleteBlobs": Words(
        "Delete the blobs",
        "when the fence holds",
        "Nobody knows their addresses, nor ever will. What remains, best effort, is a candidate next time.",
    ),
    "truncation.clean_beside/fencing.look: LoadEntity": Words(
        "Load the entity",
        "at the beginning, for streams and read models, if there are candidates",
        "Its ledger says of what kind a stream is, and which number is next. Neither is ever taken back, so any view will do, "
        "and nothing is fenced.",
    ),
    "truncation.clean_beside: LoadBeside": Words(
        "Read the candidates again",
        "when the ledger is known, or at the beginning where it is not needed",
        "What was written since is not old any more, and stays. Of the others it is judged what they are: a record that owes, "
        "a message that waits, and events from the last whole state on stay, however old.",
    ),
    "truncation.clean_beside: DeleteBeside": Words(
        "Delete those that may go, as they were judged",
        "when there are any",
        "A deletion that arrives late takes nothing that was written since. What remains, best effort, is a candidate next "
        "time.",
    ),
    "retention.clean_processed: DeleteProcessed": Words(
        "Delete records older than the retention, as they were read",
        "at the beginning, if there are candidates",
        "No copy of their messages can still arrive. A record that is being written anew has another ETag, and stays; if it "
        "is deleted first, writing creates it.",
    ),
}
