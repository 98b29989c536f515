"""The strategies that are driven, by the names that the pages give them; with limits so small that little leads to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from exactlyonce import Colocated, Entity, Rebuild, Resequencer, VersionStream
from exactlyonce.attempt import Strategy
from verification.twins.room import outbox

OUTBOX: Final = "Outbox()"
COLOCATED: Final = "Colocated()"
STREAM: Final = "VersionStream()"


@dataclass(frozen=True, slots=True)
class Sent:
    """State of an entity that sends messages to a read model."""

    messages: int = 0


SENDER: Final = Entity("sender", state=Sent, container="senders", partition_key="/key", strategy=VersionStream())
AT_ONCE: Final = timedelta(0)

WAITING: Final = "Resequencer()"
SKIPPING: Final = 'Resequencer(on_gap="skip")'
IN_TIME: Final = 'Resequencer(order="time")'
RESEQUENCERS: Final = {
    WAITING: Resequencer(gap_timeout=AT_ONCE),
    SKIPPING: Resequencer(gap_timeout=AT_ONCE, on_gap="skip"),
    "Resequencer(on_gap=Rebuild(…))": Resequencer(gap_timeout=AT_ONCE, on_gap=Rebuild(of=SENDER, through="senders")),
    IN_TIME: Resequencer(gap_timeout=AT_ONCE, order="time"),
}

STRATEGIES: Final[Mapping[str, Strategy]] = {
    OUTBOX: outbox(marks=1, answered=1),  # The true limits lead the same ways, later.
    COLOCATED: Colocated(),
    STREAM: VersionStream(snapshot_every=2),
    **RESEQUENCERS,
}
