"""Renumbering: a source that would give out numbers twice begins fresh channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from exactlyonce.attempt import Again, Memory, Strategy
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import Saved, SaveEntity
from exactlyonce.protocols.steps.load import load, start_over, with_ledger
from exactlyonce.records.sequences import Sequences
from exactlyonce.values.envelope import EntityRef


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A source will begin fresh channels.

    Attributes:
        forgotten: the former sequences; empty if no number was given out since the last renumbering.
        memory: for this process's next step on the entity.
    """

    forgotten: Sequences
    memory: Memory


def renumber(entity: EntityRef, strategy: Strategy, memory: Memory) -> Step[Renumbered | Again]:
    """Forget how far an entity has numbered its outputs. At most 4 effects.

    An entity restored from a backup gives out numbers that receivers have seen. Receivers refuse such messages as forks while
    they know the latest ids of the channel, and drop them afterwards. In a fresh channel every number is new.

    Owed outputs keep the numbers of their commit.

    Args:
        entity: the source.
        strategy: strategy of the entity type.
        memory: this process's memory of the entity.

    Raises:
        StoredDataError: the document cannot be trusted; nothing was changed.
        ConfigurationError: the entity belongs to another protocol.
    """
    view = yield from load(entity, strategy, memory)
    if isinstance(view, Again):
        return view
    sequences = view.ledger.sequences
    if view.document is None or not sequences:
        return Renumbered((), view.memory)
    owing = (one.without_sequences(entity, view.ledger.to, sequences) for one in view.ledger.outbox)
    ledger = replace(view.ledger, sequences=(), outbox=tuple(owing))
    # Save the entity without its sequences, if it is unchanged. A commit in between has given out numbers.
    saved = yield from SaveEntity(entity, with_ledger(view.document, ledger), view.etag)
    if not isinstance(saved, Saved):
        return start_over(view.memory, saved)
    return Renumbered(sequences, replace(view.memory, entity_token=saved.token, saved=None))
