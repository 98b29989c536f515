"""Kept messages: what an entity sends at a later time, and may cancel until then.

The ledger names them, and a staged document holds each. So the commit that sends one, the one that cancels it and the one that
releases it are saves of one document, each on the condition that it has not changed: a message is either released or
cancelled. It gets its number and its time when it is released, so a cancelled one leaves no gap, and no age counts before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import with_config

from exactlyonce.values.shapes import EXACT

_SUFFIX: Final = "-kept"


@with_config(EXACT)
@dataclass(frozen=True, slots=True)
class Kept:
    """A message that is kept until it is due.

    Attributes:
        id: of the output that it will be.
        due: when it is to be released.
        tx: names the staged document that holds it, with others of the same commit.
    """

    id: str
    due: datetime
    tx: str


def kept_by(tx: str) -> str:
    """What names the staged document of the messages that a transaction keeps; its outputs may be staged apart from them."""
    return f"{tx}{_SUFFIX}"


def keeper_of(tx: str) -> str:
    """The transaction whose outputs or kept messages a staged document of this name holds."""
    return tx.removesuffix(_SUFFIX)
