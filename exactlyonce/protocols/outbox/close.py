"""Closing a number: its message is received without being handled, so that its channel keeps no gap."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again, Before, Finished, Handle, Handled, Memory, Work
from exactlyonce.effects.effect import Step
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json


def close_number(strategy: Outbox, work: Work, memory: Memory) -> Step[Finished | Again]:
    """Receive numbered messages that nobody will handle: one that is discarded, or goes on as a new message.

    It is an attempt whose handler changes nothing. So a message that was processed meanwhile is a copy, and copies that come
    later are dropped.

    Args:
        strategy: of the receiver.
        work: the messages; their handler does not run.
        memory: what this process knows of the receiver.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was changed.
        ConfigurationError: it belongs to another protocol.
    """
    return strategy.attempt(replace(work, handle=_changing_nothing(work.absent)), memory)


def _changing_nothing(absent: Json) -> Handle:
    """A handler that keeps the state and sends nothing. An absent entity stays absent: it becomes a tombstone."""

    def handle(before: Before, envelope: Envelope) -> Handled:
        del envelope
        return Handled(before.body or absent, deleted=before.body is None, sequences=before.sequences)

    return handle
