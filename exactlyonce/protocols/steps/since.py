"""The time of what a message causes, by which its receivers judge and remember it."""

from __future__ import annotations

from datetime import datetime, timedelta

from exactlyonce.values.envelope import MILLISECOND, Envelope, milliseconds


def since_of_outputs(cause: Envelope, at: datetime, send_limit: timedelta) -> int:
    """The time of what a message causes, in milliseconds since 1970: its own, which is the same whenever it is handled again.

    Args:
        cause: the message.
        at: time of the attempt. What a message causes has it that has no time, or is too old to send under its own.
        send_limit: age above which nothing is sent under its time.
    """
    stated, now = cause.since, milliseconds(at)
    if stated is None and cause.time is not None:
        stated = milliseconds(cause.time)
    return now if stated is None or now - stated > send_limit // MILLISECOND else stated
