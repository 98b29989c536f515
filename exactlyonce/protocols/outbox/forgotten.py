"""Messages of channels that may have been forgotten: they are refused, never handled and never dropped."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from exactlyonce.attempt import Again, Finished, Work
from exactlyonce.effects.effect import Step
from exactlyonce.errors import ForgottenChannel, MessageFromTheFuture
from exactlyonce.protocols.outbox.judge import Arrival, Failed, channels_in
from exactlyonce.protocols.steps.load import View
from exactlyonce.protocols.steps.save import fence
from exactlyonce.records.channels import beginning
from exactlyonce.records.sequences import milliseconds
from exactlyonce.values.lifetimes import AHEAD


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


def require_time(channel: str, forget_after: timedelta | None, now: datetime, message: str) -> None:
    """Refuse the first message of a channel whose id says a time that cannot be right.

    Clean-up compares when channels began, by the clocks of their sources. One that is far ahead would keep its channels for
    good; one that is far behind would see them forgotten at once.

    Args:
        channel: id of a channel that is not known.
        forget_after: age from which channels are forgotten; None for never, and then no time is wrong.
        now: the present, by the store's time.
        message: names the message.

    Raises:
        MessageFromTheFuture: the channel began more than a day ahead.
        ForgottenChannel: it began so long ago that it could have been forgotten.
    """
    began = beginning(channel)
    if forget_after is None or began is None:
        return
    age = timedelta(milliseconds=milliseconds(now) - began)
    if age < -AHEAD:
        raise MessageFromTheFuture(
            f"{message} is of channel {channel}, which began {-age} ahead of the store's time, as its id says; at most {AHEAD} "
            "is taken. It was not handled. Set the clock of its source."
        )
    if age > forget_after:
        raise ForgottenChannel(
            f"{message} is of channel {channel}, which is not known and began {age} ago, as its id says. Channels are "
            f"forgotten from {forget_after} on, so it was not handled. Is the clock of its source behind? Then set it. If the "
            "message waited as long, and was certainly not processed, send it as a new message (requeue --as-new)."
        )


def _refusal(one: Arrival) -> ForgottenChannel:
    assert one.place is not None  # noqa: S101  # Only places have channels.
    return ForgottenChannel(
        f"Message {one.key} has the number {one.place.number} in channel {one.place.channel}, which is not known and began so "
        "long ago that it may have been forgotten. The message may be a copy of one that was processed, so it was not handled. "
        "If it certainly was not processed, send it as a new message (requeue --as-new)."
    )
