"""What of the host, and of what drives strategies, there are twins of."""

from __future__ import annotations

from typing import Final

from exactlyonce.drivers import lanes
from exactlyonce.hosting.deliveries import receiver, settlement
from exactlyonce.hosting.deliveries import settlement as returner
from exactlyonce.protocols.steps import give_back

HOST: Final = (give_back, lanes, returner, settlement, receiver)
"""In such an order that each comes after what it imports from."""
