"""The pages of the protocols that keep their records beside the entity."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.specification import cost_scenarios, occasions_beside, occasions_ordered
from devtools.modelcheck.specification.chapters import Chapter, Part
from devtools.modelcheck.specification.settings import COLOCATED as COLOCATED_NAME
from devtools.modelcheck.specification.settings import STREAM as STREAM_NAME
from devtools.modelcheck.specification.settings import WAITING

ACKNOWLEDGED: Final = "the messages may be acknowledged, but for those that failed"

COLOCATED: Final = Chapter(
    "colocated.md",
    "The co-located protocol",
    """
One transactional batch saves the entity, if it is unchanged, and creates a record for each message beside it, which holds the
outputs. The record's id derives from the message, so a message that was processed collides with itself, whatever the reads
before missed. Then the outputs are published, and then dropped from the record. It is what the well-known outbox persisters
do, for containers that may hold the library's documents too. A message that the host gives up on is
[settled](settling-beside.md).
""",
    "processing messages with a record beside the entity, and sweeping these records",
    f"{ACKNOWLEDGED}; after a sweep, that nothing more is to be done now",
    parts=(
        Part(
            "Processing messages",
            "One attempt at one message for an entity, or at several that share a batch; copies of one message count once.",
            occasions_beside.colocated_attempts,
        ),
        Part(
            "Sweeping an entity",
            "For records that have owed outputs for longer than an attempt takes, where no delivery comes back.",
            occasions_beside.colocated_sweeps,
        ),
    ),
    costs=cost_scenarios.RECORDS,
)

STREAM: Final = Chapter(
    "version-stream.md",
    "The version stream",
    """
No outputs are stored. Every message leaves an entry in the stream of its entity, in one batch with the entity's new state:
how to get back to the state before it, and a digest of what was sent. A duplicate is handled again on the state that it was
first handled on, with the time it was first given, and so sends what it sent, under the same ids and numbers. That needs
handlers that are deterministic; the digest tells where one is not, and then nothing is sent. Where the entity is
event-sourced, entries hold what happened in place of the way back; the steps are the same. A message that the host gives up
on is [settled](settling-beside.md).
""",
    "processing messages with a version stream, and sending again what it sent",
    f"{ACKNOWLEDGED}; elsewhere, that what was asked for is done",
    parts=(
        Part(
            "Processing messages",
            "One attempt at one message for an entity, or at several that share a batch; copies of one message count once.",
            occasions_beside.stream_attempts,
        ),
        Part(
            "Finding what a read model lacks",
            "A read model asks for numbers of a sequence; these are the versions to send again.",
            occasions_beside.searches,
        ),
        Part(
            "Sending again",
            "All that a range of versions sent, or what a read model lacks of it; whoever asks goes on until there is no more.",
            occasions_beside.replays,
        ),
    ),
    costs=cost_scenarios.STREAM,
)

RESEQUENCER: Final = Chapter(
    "resequencer.md",
    "The resequencer",
    """
A read model handles the messages of each source in the order in which they were sent: 1, 2, 3 … What comes too early is held
beside it; every arrival releases what follows without a gap; what came before is dropped. How far each sequence is received
stands in the read model's own ledger, so that one condition guards all of it: state, numbers and held messages change in one
batch. With `order="time"` a message may also wait until other sources have sent a later one; the steps are the same. What
released messages send is owed by the ledger until it was published, as in the [outbox](outbox.md). A message that the host
gives up on is [settled](settling-beside.md).
""",
    "receiving messages in order, marking what a read model sent, and looking after gaps",
    "the messages may be acknowledged, but for those that failed: they were released, held or dropped, and nothing more can be "
    "released",
    parts=(
        Part(
            "Receiving messages",
            "One attempt at one message for a read model, or at several that share a batch; copies of one message count once.",
            occasions_ordered.receptions,
        ),
        Part(
            "Marking what was published",
            "The next commit drops the entries along the way. Only if none comes for a while, the outbox's marking does.",
            occasions_ordered.markings_in_order,
        ),
        Part(
            "Tending a read model",
            "For the sweeper or an operator: what is to be done about gaps, and then whatever any arrival would release.",
            occasions_ordered.tendings,
        ),
    ),
    costs=cost_scenarios.RESEQUENCER,
)

SETTLING_BESIDE: Final = Chapter(
    "settling-beside.md",
    "Settling beside the entity",
    """
The host gives up on a message after some deliveries. Either it was processed, and what it owes is published; or it never was
nor will be, and it is parked. For entities on the [outbox](settling.md) the ledger and the records tell; here a companion
does: the record of the [co-located protocol](colocated.md), the entry of a [stream](version-stream.md), or the document of
its number in a [read model](resequencer.md). A companion proves that the message was processed, in however old a view; that
there is none proves nothing until a fence holds. Sending a parked message again is the [same for all](settling.md).
""",
    "the settler for messages that the host gave up on, where records lie beside the entity",
    "the message was settled, and its delivery may go",
    parts=(
        Part(
            "Settling a message that the host gave up on",
            "The protocols differ in which companion tells, and in what is done if it is there.",
            occasions_ordered.all_settlements,
        ),
    ),
    presets=(COLOCATED_NAME, STREAM_NAME, WAITING),
)
