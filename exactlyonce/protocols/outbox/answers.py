"""Answers to requests: where retries find them."""

from __future__ import annotations

from dataclasses import replace

from exactlyonce.attempt import Again
from exactlyonce.effects.effect import NoAnswer, Step
from exactlyonce.effects.library import LoadProcessed
from exactlyonce.protocols.outbox.judge import Arrived
from exactlyonce.protocols.steps.load import View
from exactlyonce.values.identity import EntityRef


def with_answers(entity: EntityRef, arrived: Arrived, view: View, token: str | None) -> Step[View | Again]:
    """The view with the records of requests that have no entry any more. At most one effect.

    Args:
        entity: that was loaded.
        arrived: the messages of the attempt.
        view: which knows the messages that have records.
        token: of the view that showed these records.
    """
    entries = {entry.message for entry in view.ledger.entries}
    asked = tuple(
        one.key for one in arrived.messages if one.envelope.asked and one.foreign and one.key in view.done - entries
    )
    if not asked:
        return view
    # Read the records of requests, for their answers. In a view that has them: one that is absent was cleaned up just now.
    found = yield from LoadProcessed(entity, asked, token)
    if isinstance(found, NoAnswer) or len(found.records) < len(asked):
        return Again(view.memory, "the answer to a request could not be read")
    return replace(view, records=found.records)
