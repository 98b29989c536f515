"""The words about the steps of the resequencer."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.specification.vocabulary import Words

ORDERED: Final = {
    "resequencer.attempt/fencing.look: LoadEntity": Words(
        "Load the read model",
        "at the beginning",
        "Its ledger knows, for each source, the next number and which numbers are held. An old view can only fail its own "
        "commit.",
    ),
    "resequencer.attempt/outbox.publish_owed: Publish": Words(
        "Publish what the read model owes",
        "when an entry owes outputs that this process does not know to be published",
        "The attempt that released those messages may have died before it published. The next commit drops the entries, and "
        "nobody could publish them then.",
    ),
    "resequencer._known: LoadBeside": Words(
        "Read the documents of the numbers that matter",
        "when an arrival may be known, or something that is held can be released",
        "At the read model's session token, after it: what the ledger says is held has to be there, since all that follow "
        "would wait for it for ever; of what was handled, clean-up may have taken the document. If the view shows that a "
        "held message was released already, the read model was seen in an older view, and no commit can succeed.",
    ),
    "resequencer._received: Begin": Words(
        "Begin, and release, hold or drop",
        "always",
        "Below the next number it is a copy: dropped, or noted if its number was given up. The next one is handled, and so is "
        "every held one that follows without a gap; what comes after a gap is held. A handler that raises stops its sequence: "
        "its message is held too, and so are those after it. With one order for all sources, a message also waits for sources "
        "that are silent.",
    ),
    "resequencer._commit: SaveTogether": Words(
        "Commit: save the read model, and write the documents of numbers",
        "when anything was released, held, or is to be noted",
        "State, numbers and held messages in one batch, on the condition that the read model is as it was loaded. Without it a "
        "message could be held just after the arrival that it waits for had looked, and nobody would release it.",
    ),
    "resequencer._commit: Publish": Words(
        "Publish the outputs",
        "when released messages have outputs",
        "After the commit, so that nothing is published that was not committed. Until the next commit they stay owed. If the "
        "batch had no room for all that can be released, nothing is acknowledged: else a crash would leave the rest held.",
    ),
    "gaps.tend/fencing.look: LoadEntity": Words(
        "Load the read model", "at the beginning", "Its ledger tells since when messages are held for want of another."
    ),
    "gaps.tend: Begin": Words(
        "Ask for the time",
        "always",
        "A gap is overdue when it is older than `gap_timeout`, by the clock of processes: a wrong one skips too early, or asks "
        "a source in vain, but releases nothing out of order.",
    ),
    "gaps._skip: SaveTogether": Words(
        "Skip: go on after the gap, and write a document for each number",
        'when a gap is overdue, and `on_gap` is "skip"',
        "On the condition that the read model is as it was loaded, so a message that comes at the last moment wins. The "
        "document tells for good that its number was given up, and notes a message that comes too late.",
    ),
    "gaps._ask_again: Publish": Words(
        "Ask the sources to send again",
        "when a gap is overdue, and `on_gap` is a `Rebuild`",
        "To ask twice does no harm: the request has the same id as long as the gap is the same, and what comes again is known "
        "by its number.",
    ),
    "settling_beside._taken/outbox.publish_owed: Publish": Words(
        "Publish what the read model owes",
        "when the message was taken, and an entry owes outputs",
        "What was released is processed; what is held is safe, and released by whoever comes. Its delivery may go.",
    ),
}
