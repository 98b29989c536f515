"""The stable time of what a message causes, by which its receivers judge and remember it."""

from __future__ import annotations

from datetime import datetime, timedelta

from exactlyonce.values.envelope import MILLISECOND, milliseconds


def since_of_outputs(since: int | None, at: datetime, send_limit: timedelta) -> int | None:
    """The stable time of what a message causes, in milliseconds since 1970: that of the message; None for none.

    A message may be handled again, as after a restore. Then its outputs have the same identity, so they need the same time.
    Where the message is untimed, or too old to send under its time, they are untimed, too: receivers look for them by hash.

    Args:
        since: of the message; None if it is untimed.
        at: time of the attempt.
        send_limit: age above which nothing is sent under its time.
    """
    too_old = since is not None and milliseconds(at) - since > send_limit // MILLISECOND
    return None if too_old else since
