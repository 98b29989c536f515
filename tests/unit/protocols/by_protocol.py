"""The protocols. Those with companions take the same steps; what the outbox does has tests of its own."""

from __future__ import annotations

import pytest

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Strategy
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream

PROTOCOLS: dict[str, Strategy] = {
    "outbox": Outbox(),
    "colocated": Colocated(),
    "stream": VersionStream(snapshot_every=4),
    "resequencer": Resequencer(),
}
WITH_COMPANIONS = ("colocated", "stream", "resequencer")

COMPANIONS = pytest.mark.parametrize("protocol", WITH_COMPANIONS)
BOTH = pytest.mark.parametrize("protocol", ["colocated", "stream"])
