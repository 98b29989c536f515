"""Sending again what was lost: what a read model asks for, and whether a stream sends what it is asked for.

Read model and stream are explored apart. To the read model the stream is somebody who answers every request, some time.
"""

from __future__ import annotations

from typing import Any

from exactlyonce.effects.companions import FindNumbered
from exactlyonce.effects.entity import Loaded
from exactlyonce.protocols.resequencer.gaps import REPLAY, Rebuild, read_request
from exactlyonce.protocols.stream.replay import Missing, Replayed
from exactlyonce.records.companions import StreamEntry
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outbox import Output, holds
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from verification.world.companions_handler import CHANNEL, by_key, channel_of
from verification.world.scenario import Scenario
from verification.world.store import Entity, Store, view_of
from verification.world.tasks import ANSWER, Start
from yieldcheck.situations import Situation


def is_request(output: Output) -> bool:
    """Whether an output asks a source to send something again."""
    return bool(output.envelope.value.get("type") == REPLAY)


def asked_for(scenario: Scenario, request: Output) -> tuple[str, ...]:
    """Keys of the messages that come of a request; none if it goes astray."""
    source, missing = read_request(Envelope.read(request.envelope.text))
    rebuild = scenario.strategy.on_gap
    assert isinstance(rebuild, Rebuild)  # noqa: S101
    if request.destination != rebuild.through:
        return ()
    return tuple(
        key
        for key, item in by_key(scenario.messages).items()
        if (item.source, channel_of(item)) == (source, missing.channel)
        and missing.first <= (item.number or 0) <= missing.last
    )


def missing_of(scenario: Scenario) -> Missing | None:
    """What a stream is asked to send again; None for everything."""
    return None if scenario.missing is None else scenario.chores.missing(CHANNEL, *scenario.missing)


def was_sent(scenario: Scenario, store: Store) -> bool:
    """Whether a stream has given out all the numbers that are missing. Nobody asks before."""
    sequences = (store.partition.view.ledger or Ledger()).sequences
    return scenario.missing is None or any(sequence.last >= scenario.missing[1] for sequence in sequences)


def can_go_on(scenario: Scenario, store: Store) -> bool:
    """Whether what is next in some channel is held, or to be skipped or asked for; or the read model owes something."""
    ledger = store.partition.ledger
    ready = any(holds(reception.held, reception.next) for reception in ledger.receptions)
    gap = scenario.fills_gaps and any(reception.gap_since is not None for reception in ledger.receptions)
    return ready or gap or bool(ledger.outbox)


def versions_with(effect: FindNumbered, partition: Entity, position: int) -> tuple[int, ...]:
    """The versions whose outputs have numbers that are looked for, in one view."""
    missing = Missing(effect.channel, *effect.numbers)
    entries = (item for item, _ in partition.companions(position).values() if isinstance(item, StreamEntry))
    nothing = Json("null")
    return tuple(
        sorted(
            entry.version
            for entry in entries
            if any(
                missing.includes(Output(output.id, output.destination, nothing, place=output.place))
                for output in entry.outputs
            )
        )
    )


def unsent(scenario: Scenario, situation: Situation[Start], store: Store) -> str | None:
    """What is wrong with the end of a run that sent again what was asked for: all of it has to be published by then."""
    result: Any = situation.result
    is_over = isinstance(result, Replayed) and result.following is None
    in_vain = situation.start.task == ANSWER and result is None
    if not (is_over or in_vain):
        return None
    committed = dict(store.committed)
    for key in _asked(scenario, situation, store, committed):
        if key not in store.published:
            return f"nothing_lost: {key} was to be sent again, and was never published"
    return None


def _asked(scenario: Scenario, situation: Situation[Start], store: Store, committed: dict[str, str]) -> tuple[str, ...]:
    """Keys of the messages whose outputs were asked for: those that are missing, or all that the view knew of."""
    if scenario.missing is not None:
        first, last = scenario.missing
        return tuple(key for key, text in committed.items() if first <= (Json(text).value["number"] or 0) <= last)
    loaded = next(reply for reply in reversed(situation.replies) if isinstance(reply, Loaded))
    ledger = view_of(loaded.document).ledger or Ledger()
    entries = (item for item, _ in store.partition.now.values() if isinstance(item, StreamEntry))
    return tuple(entry.message for entry in entries if entry.version <= ledger.version)
