"""The words about the steps of the protocols that keep their records beside the entity, and process messages as they come."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.specification.vocabulary import Words

BESIDE: Final = {
    "colocated.attempt/sighting.look_beside: LoadEntity + LoadBeside": Words(
        "Load the entity, and look for records",
        "at the beginning",
        "Asked side by side they cost one round trip. Either view may be old, which does no harm: the batch "
        "creates a record for each message, and collides with what the views missed.",
    ),
    "version_stream.load_state/sighting.look_beside: LoadEntity + LoadBeside": Words(
        "Load the entity, and look for entries",
        "at the beginning",
        "Asked side by side they cost one round trip. What either view misses the batch collides with. But an entry newer than "
        "the entity's view is no use: the state before it can be reached only from a state that is no older.",
    ),
    "outbox.never_had_a_ledger: HasCompanions": Words(
        "Ask whether the entity has companions",
        "when the document has no ledger",
        "A document that others made may be adopted. But where companions exist, its ledger was removed, or the view is older "
        "than the ledger.",
    ),
    "colocated.attempt/colocated.publish_records: Publish": Words(
        "Publish what duplicates owe",
        "when a message has a record that owes outputs",
        "The attempt that committed it may have died before it published. Copies do no harm: their ids are the same.",
    ),
    "colocated.attempt/colocated.publish_records: ReplaceBeside": Words(
        "Drop the outputs from the records of duplicates",
        "when they were published",
        "As they were read, best effort: what stays is published once more by the sweeper or the next duplicate, at worst.",
    ),
    "colocated.attempt: Begin": Words(
        "Begin, and handle the messages",
        "when a message has no record in the view",
        "Time and transaction ids are all that comes from outside. A message whose handler raises, or whose result does not "
        "fit, drops out and takes no other along.",
    ),
    "colocated._commit: SaveTogether": Words(
        "Commit: save the entity, and create the records",
        "when a message was handled",
        "State, records and outputs in one batch. Whoever committed in between changed the ETag of the entity; whoever "
        "committed the same message created its record. Nothing is undone if it fails: it may still land.",
    ),
    "colocated._commit: Publish": Words(
        "Publish the outputs",
        "when what was committed has outputs",
        "After the commit, so that nothing is published that was not committed; before the messages are acknowledged, so "
        "that nothing is lost.",
    ),
    "colocated._commit: ReplaceBeside": Words(
        "Drop the outputs from the records",
        "when they were published",
        "Without a condition: what is published stays so, whoever else has written it down meanwhile. It comes before "
        "acknowledging, but nothing depends on it.",
    ),
    "colocated.sweep: FindOwing": Words(
        "Find records that owe",
        "at the beginning",
        "Even an old view tells of commits only: publishing what it owes makes copies at most. At most 100 records; what is "
        "over is for the next sweep.",
    ),
    "colocated.sweep/colocated.publish_records: Publish": Words(
        "Publish what records owe",
        "when there are any",
        "Before it is dropped from them, so that it is never nowhere.",
    ),
    "colocated.sweep/colocated.publish_records: ReplaceBeside": Words(
        "Drop the outputs from the records",
        "when they were published",
        "As they were read, best effort: what stays is found by the next sweep.",
    ),
    "settling_beside.settle_beside/fencing.look: LoadEntity": Words(
        "Load the entity",
        "at the beginning",
        "Its session token dates the next read, and its ETag is what the fence is conditional on.",
    ),
    "settling_beside.settle_beside: LoadBeside": Words(
        "Look for what tells that the message was processed",
        "when the message can have left a trace: a record, a stream entry, or the document of its number",
        "At the entity's session token: behind the fence that is the newest view there is, and what it has not is absent.",
    ),
    "settling_beside.settle_beside/settling.park/fencing.fence: SaveEntity": Words(
        "Fence: save the entity unchanged, or a tombstone if it is absent",
        "when nothing tells that the message was processed",
        "An old view, or a batch that has yet to land, looks just the same. If it is saved, the view was current, and every "
        "batch still under way will fail.",
    ),
    "settling_beside._finished/colocated.publish_records: Publish": Words(
        "Publish what the message owes",
        "when its record owes outputs",
        "It was processed, and only its outputs are missing.",
    ),
    "settling_beside._finished/colocated.publish_records: ReplaceBeside": Words(
        "Drop the outputs from the record",
        "when they were published",
        "As it was read, best effort.",
    ),
    "version_stream.attempt/version_stream.handled_again: FindEntries": Words(
        "Read the way back",
        "when a message has an entry",
        "From the next whole state, or the newest, back to the state that the message was first handled on; where the entity "
        "is event-sourced, from the whole state before it forward. All in one request, and at most `snapshot_every` entries "
        "for each duplicate.",
    ),
    "version_stream.attempt/version_stream.handled_again: Publish": Words(
        "Handle duplicates again, and publish",
        "when what the handlers send is what they sent first, as the digests tell",
        "Nobody can know whether it was published before. On the same state, with the same time and ids, a deterministic "
        "handler sends the same: copies, whose ids are known. One that sends something else fails its own message, and nothing "
        "of that is sent.",
    ),
    "version_stream.attempt: Begin": Words(
        "Begin, and handle the messages",
        "when a message has no entry in the view",
        "The entry keeps the time that is given now, so that a duplicate is handled at the same time. A message whose handler "
        "raises, or whose result does not fit, drops out and takes no other along.",
    ),
    "version_stream._commit: SaveTogether": Words(
        "Commit: save the entity, and create the entries",
        "when a message was handled",
        "State and entries in one batch; no outputs. An entry also where the state did not change: else a duplicate would be "
        "handled on another state. Whoever committed in between changed the ETag of the entity; whoever committed the same "
        "message created its entry.",
    ),
    "version_stream._commit: Publish": Words(
        "Publish the outputs",
        "when what was committed has outputs",
        "After the commit, so that nothing is published that was not committed; before the messages are acknowledged: nobody "
        "else has these outputs, and only the delivery that comes back makes them again.",
    ),
    "replaying.versions_of/fencing.look: LoadEntity": Words(
        "Load the entity", "at the beginning", "Its ledger tells which numbers it has given out."
    ),
    "replaying.replay/fencing.look: LoadEntity": Words(
        "Load the entity", "at the beginning", "It tells how many versions there are, and is where the way back begins."
    ),
    "replaying.versions_of: FindNumbered": Words(
        "Find the versions that sent these numbers",
        "when the entity has given out all of them, in this view",
        "A view in which it has yet to do so proves nothing: whoever lacks them has seen later ones.",
    ),
    "replaying.replay: FindEntries": Words(
        "Read a part of the stream",
        "when the entity has these versions",
        "As far as the next whole state, so that a replay of any length goes in parts of at most `snapshot_every` entries. "
        "At the entity's session token: entries were written with the versions it tells of.",
    ),
    "replaying.replay: Publish": Words(
        "Handle a part again, and publish",
        "when the handlers send what they sent first, and any of it is asked for",
        "The same ids and numbers: whoever has seen them knows them for copies, and whoever lacks them gets them. If a handler "
        "sends something else, nothing of the part is sent.",
    ),
    "settling_beside._finished/version_stream.handled_again: FindEntries": Words(
        "Read the way back",
        "when the message has an entry",
        "It was processed; whether its outputs were published nobody knows.",
    ),
    "settling_beside._finished/version_stream.handled_again: Publish": Words(
        "Handle the message again, and publish",
        "when the handler sends what it sent first",
        "If it sends something else, or cannot handle the state any more, the message stays where it is: it is no poison "
        "message, and parking it would say so.",
    ),
}
