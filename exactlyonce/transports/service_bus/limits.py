"""Limits of Azure Service Bus."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

MAX_BYTES: Final = 256 * 1024
"""What one message may have, its header included: in the Standard tier."""

LONGEST_DELIVERY_LIMIT: Final = timedelta(days=49)
"""AMQP counts the milliseconds of a time to live in 32 bits."""
