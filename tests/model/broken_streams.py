"""More of the zoo: what can go wrong with the version stream if one guard is missing, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exactlyonce.attempt import Finished
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Begin, Begun, NoAnswer, Step, Together
from exactlyonce.effects.entity import Publish
from exactlyonce.protocols.steps import load as loading
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.outbox import Output
from tests.model.broken_companions import KEEPS, ONE, STALE, TWO, BrokenCompanions, scenario, upserted
from tests.model.careless import SAVED, taken_for
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import answers, asks, called, first, instead, replaced
from verification.twins.modules import Patch, around
from verification.world.scenario import scenario_of

STREAM = scenario_of("stream", (), VersionStream(2))
TRACELESS = replace(scenario(STREAM, KEEPS, ONE, ONE), traceless=True)
COMMIT = version_stream._commit

Altered = Callable[..., Step[Any]]


def unnoticed_where_unchanged(commit: Altered) -> Altered:
    """What leaves the state as it was is published, and not committed."""

    def twin(entity: Any, sight: Any, batch: Any) -> Step[Any]:
        if batch.body == sight.body:
            yield from Publish(batch.outputs)
            return Finished(sight.memory, batch.processed)
        outcome = yield from commit(entity, sight, batch)
        return outcome

    return twin


def on_one_version_later(point_before: Callable[..., Any]) -> Callable[..., Any]:
    def twin(work: Any, version: int, found: Any, ledger: Any, now: Any) -> Any:
        return now if version == ledger.version else point_before(work, version + 1, found, ledger, now)

    return twin


def begun_again(change: Callable[[Any, Begun], Any]) -> Patch:
    """Each duplicate is handled again as if it had just begun: `change(entry, begun)` makes its entry."""

    def wrapper(handled_again: Altered) -> Altered:
        def twin(work: Any, messages: Any, entries: Any, sight: Any) -> Step[Any]:
            begun = yield from Begin(tuple(entry.message for entry in entries))
            changed = tuple(change(entry, begun) for entry in entries)
            failed = yield from handled_again(work, messages, changed, sight)
            return failed

        return twin

    return around(version_stream.handled_again, wrapper)


def outputs(change: Callable[[Output], Output]) -> Patch:
    """Each output of a message that is handled again is changed so."""
    return around(version_stream.outputs_again, lambda again: lambda *known: tuple(map(change, again(*known))))


def one_after_the_other(together: Together[Any, Any], *_: Any) -> Step[Any]:
    """The companions are read in a view as new as that of the entity."""
    loaded = yield from together.first
    if isinstance(loaded, NoAnswer):
        return loaded, loaded
    found = yield from replace(together.second, token=loaded.token)  # type: ignore[call-arg]
    return loaded, found


UPSERT = around(COMMIT, asks(SaveBatch, upserted))
ONE_BY_ONE = around(loading.load_with_companions, instead(Together, one_after_the_other))
ON_THE_NEWEST_STATE = around(version_stream.point_before, replaced(lambda _work, _version, _found, _ledger, now: now))
NOT_COMPARED = Mutation("stream: digests not compared")
WITHOUT_TOKEN = Mutation("stream: a range read without a token")
GAPS_NOT_NOTICED = Mutation("stream: gaps in a range not noticed")

BROKEN_STREAMS: tuple[BrokenCompanions, ...] = (
    Broken(
        "no entry where the state is unchanged",
        (around(COMMIT, unnoticed_where_unchanged),),
        TRACELESS,
        "at_most_one_output",
    ),
    Broken(
        "a duplicate handled on the newest state",
        (ON_THE_NEWEST_STATE,),
        scenario(STREAM, TWO),
        "no_failure: web/m0 fails with NonDeterministicHandler",
    ),
    Broken(
        "a duplicate handled on the newest state, digests not compared",
        (ON_THE_NEWEST_STATE, NOT_COMPARED),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    Broken(
        "a duplicate handled on the state one version too late",
        (around(version_stream.point_before, on_one_version_later), NOT_COMPARED),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    Broken(
        "published before the batch",
        (around(COMMIT, first(lambda _entity, _sight, batch: Publish(batch.outputs) if batch.outputs else None)),),
        scenario(STREAM, ONE),
        "no_ghost_output",
    ),
    Broken(
        "an entry created by an upsert, read in a view of any age",
        (UPSERT,),
        scenario(STREAM, TWO, stale=1),
        "at_most_one_state_change",
    ),
    Broken(
        "a range read without a token",
        (WITHOUT_TOKEN,),
        scenario(STREAM, TWO, stale=STALE),
        "raised DamagedDocument",
    ),
    Broken(
        "a range read without a token, gaps in it not noticed",
        (WITHOUT_TOKEN, GAPS_NOT_NOTICED, NOT_COMPARED),
        scenario(STREAM, TWO, stale=STALE),
        "consistent_state_and_output",
    ),
    Broken(
        "handled again with new ids",
        (outputs(lambda item: replace(item, id=f"again:{item.id}")),),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    Broken(
        "handled again at another time",
        (begun_again(lambda entry, begun: replace(entry, at=begun.at)), NOT_COMPARED),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    Broken(
        "handled again in another transaction",
        (begun_again(lambda entry, begun: replace(entry, tx=begun.transactions[0])), NOT_COMPARED),
        scenario(STREAM, TWO),
        "consistent_state_and_output",
    ),
    Broken(
        "handled again with numbers from the beginning",
        (
            around(
                version_stream.outputs_again,
                called(
                    lambda entity, envelope, entry, before, handle: (
                        *(entity, envelope, entry, before),
                        lambda given, message: handle(replace(given, sent=None), message),
                    )
                ),
            ),
        ),
        scenario(STREAM, ONE, TWO),
        "no_failure: web/m1 fails with NonDeterministicHandler",
    ),
    Broken(
        "a whole state left out",
        (around(version_stream.is_whole, replaced(lambda *_: False)),),
        scenario(STREAM, TWO, ONE, ONE),
        "raised DamagedDocument",
    ),
    Broken(
        "a duplicate is acknowledged without being handled again",
        (Mutation("stream: a duplicate is acknowledged without being handled again"),),
        scenario(STREAM, ONE, crashes=1),
        "nothing_lost",
    ),
    Broken(
        "unknown batch taken as saved",
        (around(COMMIT, answers(SaveBatch, taken_for(SAVED, NoAnswer))),),
        scenario(STREAM, ONE, unknown=1),
        "no_ghost_output",
    ),
)
