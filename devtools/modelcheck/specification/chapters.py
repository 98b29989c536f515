"""The pages as data: what each is about, and what is driven for its steps. These are about the outbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from devtools.modelcheck.specification import cost_scenarios
from devtools.modelcheck.specification.chores import (
    cleanings_of_processed,
    cleanings_of_staged,
    first_returnings,
    renewals,
    requeuings,
    returnings,
    settlements,
    sweeps,
)
from devtools.modelcheck.specification.costs import Costing
from devtools.modelcheck.specification.occasions import attempts, markings
from devtools.modelcheck.specification.occasions_blobs import cleanings_of_blobs
from devtools.modelcheck.specification.occasions_truncation import cleanings_beside
from devtools.modelcheck.specification.playing import Occasion
from devtools.modelcheck.specification.settings import PRESETS


@dataclass(frozen=True, slots=True)
class Part:
    """One generator, driven."""

    title: str
    intro: str
    occasions: Callable[[], Iterable[Occasion]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One page.

    Attributes:
        name: of the file.
        title, intro: at its beginning.
        summary: for the index.
        finished: what it means that an attempt finished.
        parts: in order.
        presets: names of strategies, if the page is to tell which of them come to a step; else none.
        costs: of what is told here; none if they are told elsewhere, or depend on what there is to do.
    """

    name: str
    title: str
    intro: str
    summary: str
    finished: str
    parts: tuple[Part, ...]
    presets: tuple[str, ...] = ()
    costs: tuple[Costing, ...] = ()


OUTBOX: Final = Chapter(
    "outbox.md",
    "The outbox protocol",
    """
State and outputs are committed by one conditional save of the entity document, whose ledger remembers the latest transactions.
Outputs are published after the commit; messages are acknowledged after publishing. An entry that leaves the ledger becomes a
processed record. Outputs too large for the document are staged apart before the commit. Nothing is ever undone: a conflict or
an unknown outcome leads back to the beginning, where the ledger tells whose commit won.
""",
    "processing messages, and marking what was published",
    "the messages may be acknowledged, but for those that failed",
    presets=tuple(PRESETS),
    costs=cost_scenarios.OUTBOX,
    parts=(
        Part(
            "Processing messages",
            "One attempt at one message for an entity, or at several that share a commit; copies of one message count once.",
            attempts,
        ),
        Part(
            "Marking what was published",
            "The next commit of the same process marks along the way. Only if none comes for a while, it saves by itself.",
            markings,
        ),
    ),
)

SETTLING: Final = Chapter(
    "settling.md",
    "Finishing what others left",
    """
An attempt that died after its commit is finished by the redelivery of its message or by later messages on the entity. Where
neither comes, these do: the sweeper publishes what an entity owes; the settler decides about a message that the host gave up
on; and what was parked can be sent again. Each may run at any time, twice, and beside everything else.
""",
    "the sweeper, the settler for messages that the host gave up on, and sending parked messages again",
    "nothing more is to be done now; where a message was settled, its delivery may go",
    parts=(
        Part("Sweeping an entity", "For entities that have owed outputs for longer than an attempt takes.", sweeps),
        Part(
            "Settling a message that the host gave up on",
            "Either it was processed, and what it owes is published; or it never was nor will be, and it is parked.",
            settlements,
        ),
        Part("Sending a parked message again", "When its cause is mended.", requeuings),
        Part(
            "Making a parked message a new one",
            "When it is too old to be sent under the identity it has, and an operator is certain that it was not processed.",
            renewals,
        ),
    ),
)

RETURNING: Final = Chapter(
    "returning.md",
    "Returning messages to their queues",
    """
A message that its queue gave up, because its environment failed or nobody knows why, goes back to that queue. What is sent is
a copy like any other, so it may be done at any time and twice. Only what is parked is not sent: that says of a message that it
was never processed.
""",
    "sending messages that were given up for their environment's sake to their queues once more",
    "the delivery may go",
    parts=(
        Part(
            "Returning a message unless it is parked",
            "Where it may have been settled before: a process may have parked it, and died before its delivery went.",
            returnings,
        ),
        Part("Returning a message that cannot be parked", "Where it is settled for the first time.", first_returnings),
    ),
)

RETENTION: Final = Chapter(
    "retention.md",
    "Clean-up",
    """
Age only chooses the candidates. That a staged document can go rests on a fence, not on a clock: attempts that could still
commit what it belongs to fail on it. That a record can go rests on the retention, which is longer than any copy of its message
may take to arrive.
""",
    "deleting staged outputs and blobs that nothing names, and records and companions older than the retention",
    "the candidates were judged",
    parts=(
        Part(
            "Deleting staged outputs",
            "Candidates are staged documents older than the horizon, which keeps clean-up from disturbing attempts that live.",
            cleanings_of_staged,
        ),
        Part(
            "Deleting processed records",
            "Candidates are records older than the retention, with the ETags they were read with.",
            cleanings_of_processed,
        ),
        Part(
            "Deleting blobs",
            "Candidates are [blobs](../howto/blobs.md) older than the horizon, and younger than half the retention, so that "
            "what tells of their commits is still there. All strategies may have written them.",
            cleanings_of_blobs,
        ),
        Part(
            "Deleting what lies beside an entity",
            "Candidates are companions older than the retention, with the ETags they were read with, at most 100.",
            cleanings_beside,
        ),
    ),
)
