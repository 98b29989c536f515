"""More of the zoo: what can go wrong with the protocols of one partition if one guard is missing, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from exactlyonce.effects.attempt import Again, Work, never
from exactlyonce.effects.companions import FindEntries, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import Begin, Begun, NoAnswer, Step, Together
from exactlyonce.effects.entity import PUBLISHED, Conflict, Publish
from exactlyonce.errors import TooOldToJudge
from exactlyonce.protocols import colocated
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.steps import batch as batching
from exactlyonce.protocols.steps import load as loading
from exactlyonce.protocols.stream import protocol as version_stream
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.outbox import Output
from tests.model.broken_memory import LOST, SAVED, TWICE, DeletedAtOnce, JudgedAtOnce, taken_for
from tests.model.broken_requests import ANSWER
from tests.model.zoo import Broken
from verification.scenarios import companions_ages
from verification.scenarios.outbox_ages import changing
from verification.scenarios.requests import IN_ONE_PARTITION
from verification.twins import mistakes
from verification.twins.alterations import answers, asks, called, comes_to, deferred, instead, replaced, unasked
from verification.twins.mistakes import COMMIT_COLOCATED, COMMIT_ENTRIES
from verification.twins.modules import Patch, around
from verification.world.scenario import UNLIMITED, Budget, Message, Scenario, scenario_of

BrokenCompanions = Broken[Scenario]


def scenario(base: Scenario, *messages: Message, **budget: int) -> Scenario:
    """The scenario with other messages and another budget."""
    return scenario_of(base.name, messages, base.strategy, budget=Budget(**budget), apart=True)


ONE, TWO = Message(), Message(2)
KEEPS = Message(2, "keeps")
STALE = UNLIMITED

COLOCATED = scenario_of("co-located", (), Colocated())


def upserted(save: SaveBatch, *_: Any) -> SaveBatch:
    """The batch, writing over whatever is there."""
    return replace(
        save, create=(), replace=tuple((item, "*") for item in (*save.create, *(old for old, _ in save.replace)))
    )


BROKEN_COLOCATED: tuple[BrokenCompanions, ...] = (
    Broken(
        "published before the commit", (mistakes.PUBLISHED_FIRST_COLOCATED,), scenario(COLOCATED, ONE),
        "no_ghost_output", 3,
    ),
    Broken(
        "a record created by an upsert", (around(COMMIT_COLOCATED, asks(SaveBatch, upserted)),),
        scenario(COLOCATED, TWO, stale=1), "at_most_one_state_change", 6,
    ),
    Broken(
        "outputs dropped before they are published",
        (around(COMMIT_COLOCATED, deferred(Publish, PUBLISHED, until=ReplaceCompanions)),),
        scenario(COLOCATED, ONE, crashes=1), "nothing_lost", 7,
    ),
    Broken(
        "owed outputs dropped before they are published",
        (around(batching.publish_records, deferred(Publish, PUBLISHED, until=ReplaceCompanions)),),
        scenario(COLOCATED, ONE, crashes=2), "nothing_lost", 10,
    ),
    Broken(
        "conflict taken as one's own success",
        (around(COMMIT_COLOCATED, answers(SaveBatch, taken_for(SAVED, Conflict, NoAnswer))),),
        scenario(COLOCATED, ONE, ONE), "no_ghost_output", 7,
    ),
    Broken(
        "a sweeper that drops without publishing", (around(batching.sweep_records, unasked(Publish, PUBLISHED)),),
        scenario(COLOCATED, ONE, crashes=1, sweeps=1), "nothing_lost", 8,
    ),
)  # fmt: skip


# More of the zoo: what can go wrong with the version stream if one guard is missing, and where it shows.


STREAM = scenario_of("stream", (), VersionStream(2))
TRACELESS = replace(scenario(STREAM, KEEPS, ONE, ONE), traceless=True)

Altered = Callable[..., Step[Any]]


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


UPSERT = around(COMMIT_ENTRIES, asks(SaveBatch, upserted))
ONE_BY_ONE = around(loading.load_with_companions, instead(Together, one_after_the_other))


class Whatever(str):
    """A digest that equals any other."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False


def not_compared(entity: Any, envelope: Any, entry: Any, *rest: Any) -> tuple[Any, ...]:
    """What a handler sends again may be anything."""
    return (entity, envelope, replace(entry, digest=Whatever()), *rest)


def from_what_is_there(work: Any, version: int, found: Any, _ledger: Any, now: Any) -> Any:
    """The state before a version, by the ways back that there are, whether or not some are missing."""
    later = (entry for entry in reversed(found) if entry.version >= version)
    return reduce(lambda point, entry: version_stream._stepped_back(work.entity, entry, point), later, now)


NOT_COMPARED = around(version_stream.outputs_again, called(not_compared))
WITHOUT_TOKEN = around(version_stream.handled_again, asks(FindEntries, lambda find, *_: replace(find, token=None)))
GAPS_NOT_NOTICED = around(version_stream.point_before, replaced(from_what_is_there))

BROKEN_STREAMS: tuple[BrokenCompanions, ...] = (
    Broken(
        "no entry where the state is unchanged", (mistakes.UNNOTICED_WHERE_UNCHANGED,), TRACELESS, "at_most_one_output",
        10,
    ),
    Broken(
        "a duplicate handled on the newest state", (mistakes.ON_THE_NEWEST_STATE,), scenario(STREAM, TWO),
        "no_failure: web/m0 fails with NonDeterministicHandler", 6,
    ),
    Broken(
        "a duplicate handled on the newest state, digests not compared", (mistakes.ON_THE_NEWEST_STATE, NOT_COMPARED),
        scenario(STREAM, TWO), "consistent_state_and_output", 7,
    ),
    Broken(
        "a duplicate handled on the state one version too late",
        (around(version_stream.point_before, on_one_version_later), NOT_COMPARED), scenario(STREAM, TWO),
        "consistent_state_and_output", 7,
    ),
    Broken(
        "published before the batch", (mistakes.PUBLISHED_FIRST_ENTRIES,), scenario(STREAM, ONE), "no_ghost_output", 3,
    ),
    Broken(
        "an entry created by an upsert, read in a view of any age", (UPSERT,), scenario(STREAM, TWO, stale=1),
        "at_most_one_state_change", 6,
    ),
    Broken(
        "a range read without a token, gaps in it not noticed", (WITHOUT_TOKEN, GAPS_NOT_NOTICED, NOT_COMPARED),
        scenario(STREAM, TWO, stale=STALE), "consistent_state_and_output", 7,
    ),
    Broken(
        "handled again with new ids", (outputs(lambda item: replace(item, id=f"again:{item.id}")),),
        scenario(STREAM, TWO), "consistent_state_and_output", 7,
    ),
    Broken(
        "handled again at another time", (begun_again(lambda entry, begun: replace(entry, at=begun.at)), NOT_COMPARED),
        scenario(STREAM, TWO), "consistent_state_and_output", 7,
    ),
    Broken(
        "handled again in another transaction",
        (begun_again(lambda entry, begun: replace(entry, tx=begun.transactions[0])), NOT_COMPARED),
        scenario(STREAM, TWO), "consistent_state_and_output", 7,
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
        scenario(STREAM, ONE, TWO), "no_failure: web/m1 fails with NonDeterministicHandler", 10,
    ),
    Broken(
        "a whole state left out", (around(version_stream.is_whole, replaced(lambda *_: False)),),
        scenario(STREAM, TWO, ONE, ONE), "raised DamagedDocument", 14,
    ),
    Broken(
        "unknown batch taken as saved", (around(COMMIT_ENTRIES, answers(SaveBatch, taken_for(SAVED, NoAnswer))),),
        scenario(STREAM, ONE, unknown=1), "no_ghost_output", 4,
    ),
)  # fmt: skip


# The zoo of requests where records are companions.


ASKED = {scenario.name.removeprefix("requests: "): scenario for scenario in IN_ONE_PARTITION}
ASKED_COLOCATED = ASKED["co-located, lost replies"]
ASKED_STREAM = ASKED["stream, lost replies"]


UNPUBLISHED = unasked(Publish, PUBLISHED)


def _keeping(make: Any, **less: Any) -> Patch:
    """What is kept of a request lacks something."""
    return around(make, lambda shipped: lambda *arguments: replace(shipped(*arguments), **less))


BROKEN_REQUESTS_OF_COMPANIONS: tuple[Broken[Scenario], ...] = (
    Broken(
        "co-located: answered before published", (around(Colocated._commit, UNPUBLISHED),), ASKED_COLOCATED, LOST, 4,
    ),
    Broken(
        "co-located: a record without its answer", (_keeping(colocated._record, answer=None),), ASKED_COLOCATED, ANSWER,
        5,
    ),
    Broken(
        "co-located: swept without publishing", (around(batching.sweep_records, UNPUBLISHED),), ASKED_COLOCATED, LOST,
        7,
    ),
    Broken("stream: answered before published", (around(version_stream._commit, UNPUBLISHED),), ASKED_STREAM, LOST, 4),
    Broken(
        "stream: an entry that does not say what it owes", (_keeping(version_stream._entry, owed=None),), ASKED_STREAM,
        LOST, 5,
    ),
    Broken("stream: a retry is not published", (around(batching.publish_records, UNPUBLISHED),), ASKED_STREAM, LOST, 6),
)  # fmt: skip


# More of the zoo: what can go wrong in one partition when time passes if one guard is missing.


AGING = {scenario.name: scenario for scenario in companions_ages.SMALL}
OLD_RECORDS = AGING["co-located: records go with age"]
RECORDS_IN_ANY_VIEW = AGING["co-located: records go with age, any view"]
OWED = AGING["co-located: what is owed grows too old"]
ENTRIES = AGING["stream: entries go with age"]
ENTRIES_IN_ANY_VIEW = AGING["stream: entries go with age, any view"]
WAY_BACK = AGING["stream: a way back goes with age"]
EVENTS = AGING["stream: events go with age"]
AGAIN = AGING["stream: what is computed again is too old"]
GONE, JUDGED = "raised DamagedDocument", "no_failure"


def never_refused(work: Work, *rest: Any) -> tuple[Any, ...]:
    """No duplicate is refused, whatever is gone."""
    return (replace(work, refusal=never), *rest)


def refused_together(failed: Any, _work: Work, messages: dict[str, Any], *_: Any) -> Any:
    """With one duplicate that is too old all messages of the attempt are refused."""
    errors = (
        () if isinstance(failed, Again) else tuple(error for _, error in failed if isinstance(error, TooOldToJudge))
    )
    return tuple((message, errors[0]) for message in messages) if errors else failed


def asked_first(handled_again: Callable[..., Step[Any]]) -> Callable[..., Step[Any]]:
    """The time is asked for before the entries are read."""

    def twin(*arguments: Any) -> Step[Any]:
        begun = yield from Begin()
        result = yield from unasked(Begin, begun)(handled_again)(*arguments)
        return result

    return twin


REFUSES_NONE = (around(version_stream.handled_again, called(never_refused)),)
REFUSES_ALL = (around(version_stream.handled_again, comes_to(refused_together)),)
ASKED_FIRST = (around(version_stream.handled_again, asked_first),)

BROKEN_AGES_OF_COMPANIONS: tuple[Broken[Scenario], ...] = (
    Broken("nobody judges, and records go", (), OLD_RECORDS, TWICE, 15, ages={"judges": False}),
    Broken("nobody judges, and entries go", (), ENTRIES, TWICE, 15, ages={"judges": False}),
    Broken("records go by a shorter retention than the judge's", (), OLD_RECORDS, TWICE, 14, ages={"cleaned": 3}),
    Broken("entries go by a shorter retention than the judge's", (), ENTRIES, TWICE, 14, ages={"cleaned": 3}),
    Broken("the present is behind where a sender is a day ahead", (), ENTRIES, TWICE, 15, ages={"behind": 1}),
    Broken("a batch lives as long as a record", (), RECORDS_IN_ANY_VIEW, TWICE, 15, ages={"prompt": False}),
    Broken("a batch lives as long as an entry", (), ENTRIES_IN_ANY_VIEW, TWICE, 14, ages={"prompt": False}),
    Broken(
        "a shorter retention is deleted by at once", (), AGING["co-located: a retention is shortened"], TWICE, 15,
        ages={"lifetimes": changing(DeletedAtOnce, 2, 4).lifetimes},
    ),
    Broken(
        "a longer retention is judged by at once", (), AGING["co-located: a retention is lengthened"], TWICE, 15,
        ages={"lifetimes": changing(JudgedAtOnce, 4, 2).lifetimes},
    ),
    Broken("what is too old is swept all the same", (), OWED, LOST, 8, ages={"limits": False}),
    Broken("what is computed again is published at any age", (), AGAIN, LOST, 10, ages={"limits": False}),
    Broken("no duplicate is refused where its way back is gone", REFUSES_NONE, WAY_BACK, GONE, 15),
    Broken("no duplicate is refused where events are gone", REFUSES_NONE, EVENTS, GONE, 19),
    Broken("a duplicate takes its group along", REFUSES_ALL, WAY_BACK, JUDGED, 17),
    Broken("the time is asked for before the entries", ASKED_FIRST, WAY_BACK, GONE, 15),
)  # fmt: skip
