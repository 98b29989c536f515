"""The protocols, and the effects by which each of them asks for the same thing."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.attempt import Strategy
from exactlyonce.effects.companions import HasCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import Effect
from exactlyonce.effects.entity import SaveEntity
from exactlyonce.effects.pages import FindPages, HasPages
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
OF_ACCOUNTS = ("outbox", "colocated", "stream")
"""Those that take messages without numbers."""

Kinds = dict[str, type[Effect[Any]]]
COMMIT: Kinds = {"outbox": SaveEntity, **dict.fromkeys(WITH_COMPANIONS, SaveBatch)}
FIND: Kinds = {"outbox": FindPages, **dict.fromkeys(WITH_COMPANIONS, LoadCompanions)}
"""What looks for a message that is not in the entity's ledger."""
HAS: Kinds = {"outbox": HasPages, **dict.fromkeys(WITH_COMPANIONS, HasCompanions)}
"""What looks for anything at all, before a document without a ledger is adopted."""

ALL = pytest.mark.parametrize("protocol", PROTOCOLS)
COMPANIONS = pytest.mark.parametrize("protocol", WITH_COMPANIONS)
ACCOUNTS = pytest.mark.parametrize("protocol", OF_ACCOUNTS)
BOTH = pytest.mark.parametrize("protocol", ["colocated", "stream"])
