"""Messages of channels that may have been forgotten: they are refused, never handled and never dropped."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Finished, Work
from exactlyonce.effects.effect import Step
from exactlyonce.errors import ForgottenChannel
from exactlyonce.protocols.outbox.judge import Arrival, Failed, channels_in
from exactlyonce.protocols.steps.load import View
from exactlyonce.protocols.steps.save import fence


def of_forgotten_channels(fresh: tuple[Arrival, ...], view: View) -> Failed:
    """The errors of messages whose channel this view does not know, and may have been forgotten.

    Args:
        fresh: messages that are not known.
        view: of the entity, with the documents of their channels.
    """
    apart, known = view.ledger.apart, channels_in(view)
    return tuple(
        (one.key, _refusal(one))
        for one in fresh
        if one.place is not None and one.place.channel not in known and apart.forgets(one.place.channel)
    )


def ended(work: Work, view: View, finished: Finished, forgotten: Failed) -> Step[Finished | Again]:
    """End an attempt that commits nothing. At most one effect.

    A message of a forgotten channel is refused behind a fence. The view may be old, and the documents of a channel that has
    come back since are gone: so the channel looks forgotten, and is in the ledger. Where an attempt commits, its commit is the
    fence.

    Args:
        work, view: of the attempt.
        finished: what the attempt comes to.
        forgotten: those of its failed messages whose channel may have been forgotten.
    """
    if not forgotten:
        return finished
    fenced = yield from fence(work.entity, view, work.absent)
    return fenced if isinstance(fenced, Again) else replace(finished, memory=fenced)


def _refusal(one: Arrival) -> ForgottenChannel:
    assert one.place is not None  # noqa: S101  # Only places have channels.
    return ForgottenChannel(
        f"Message {one.key} has the number {one.place.number} in channel {one.place.channel}, which is not known and began so "
        "long ago that it may have been forgotten. The message may be a copy of one that was processed, so it was not handled. "
        "If it certainly was not processed, send it as a new message (requeue --as-new)."
    )
