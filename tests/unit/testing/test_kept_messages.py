"""Messages sent at a later time, from the handler to the receiver: on an application in memory, with its sweeper."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Outbox, VersionStream, message
from exactlyonce.effects.library import DeleteStaged
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.due import MOST_RELEASED
from exactlyonce.records.ledger import Ledger, read_entity
from exactlyonce.testing import App, explore

LONG = timedelta(days=12)


@message("kept.plan")
class Plan(BaseModel):
    """Send a note in some days."""

    by: str = "a"
    to: str = "a"
    days: float = 10
    padding: str = ""


@message("kept.withdraw")
class Withdraw(BaseModel):
    """Cancel all notes that were planned; or those that another entity planned."""

    by: str = "a"
    ids: list[str] = []


@message("kept.close")
class Close(BaseModel):
    """Delete the entity."""

    by: str = "a"


@message("kept.note")
class Note(BaseModel):
    """Was planned."""

    to: str
    padding: str = ""


class Diary(BaseModel):
    """State of a diary: what it planned, was told when it cancelled, and got."""

    planned: list[str] = []
    told: list[bool] = []
    notes: int = 0


def diaries(strategy: Any) -> Entity[Diary]:
    entity = Entity("diary", state=Diary, container="diaries", strategy=strategy)

    @entity.handles(Plan, key=lambda plan: plan.by)
    def plan(state: Diary, plan: Plan, context: Context) -> Diary:
        note = Note(to=plan.to, padding=plan.padding)
        state.planned.append(context.send("notes", note, at=context.now + timedelta(days=plan.days)))
        return state

    @entity.handles(Withdraw, key=lambda withdraw: withdraw.by)
    def withdraw(state: Diary, withdraw: Withdraw, context: Context) -> Diary:
        state.told += [context.cancel(id) for id in withdraw.ids or state.planned]
        return state

    @entity.handles(Close, key=lambda close: close.by)
    def close(state: Diary, close: Close, context: Context) -> Diary:
        del close
        context.delete()
        return state

    @entity.handles(Note, key=lambda note: note.to)
    def noted(state: Diary, note: Note, context: Context) -> Diary:
        del note, context
        state.notes += 1
        return state

    return entity


def opened(strategy: Any = None, *, inner: bool = True, blobs: bool = False) -> tuple[App, Entity[Diary]]:
    entity = diaries(strategy or Outbox())
    notes = Destination("notes", to=entity if inner else None)
    queues = None if inner else {"notes": entity}
    return App(entity, destinations=[notes], queues=queues, blobs=blobs), entity


def diary(app: App, entity: Entity[Diary], key: str = "a") -> Diary:
    found = app.state(entity, key)
    assert found is not None
    return found


def ledger(app: App, entity: Entity[Diary], key: str = "a") -> Ledger:
    ref = entity.ref(key)
    log = app.host.accounts.documents.entities[(ref.type, *ref.partition)].log
    found = read_entity(ref, next(item.document for item in reversed(log) if item.id == ref.id)).ledger
    assert found is not None
    return found


def notes(app: App) -> list[Note]:
    """The notes that arrived, in order; the queue has other messages, too."""
    return [output for output in app.outputs("notes") if isinstance(output, Note)]


@pytest.mark.parametrize("inner", [True, False])
def test_a_message_comes_when_it_is_due_exactly_once(inner: bool) -> None:
    app, entity = opened(inner=inner)
    app.duplicate_everything()
    app.send(entity, Plan())
    app.advance(days=10)
    assert diary(app, entity).notes == 0
    app.advance(minutes=3)
    assert diary(app, entity).notes == 1
    app.advance(days=1)
    assert diary(app, entity).notes == 1
    assert ledger(app, entity).kept == ()


def test_a_cancelled_message_never_comes() -> None:
    app, entity = opened()
    app.send(entity, Plan())
    app.send(entity, Withdraw())
    assert diary(app, entity).told == [True]
    app.advance(LONG)
    assert notes(app) == []
    assert ledger(app, entity).kept == ()


def test_a_cancelled_message_leaves_no_gap_in_its_channel() -> None:
    entity = diaries(Outbox())
    app = App(entity, destinations=[Destination("notes", to=entity, ordered=True)])
    for _ in range(3):
        app.send(entity, Plan(to="b"))
    app.send(entity, Withdraw(ids=diary(app, entity).planned[:2]))
    app.advance(LONG)
    assert diary(app, entity, "b").notes == 1
    assert [sequence.last for sequence in ledger(app, entity).sequences] == [1]


def test_a_cancel_that_comes_too_late_says_so() -> None:
    app, entity = opened()
    app.send(entity, Plan(to="b"))
    app.advance(days=11)
    app.send(entity, Withdraw())
    assert diary(app, entity).told == [False]
    assert diary(app, entity, "b").notes == 1


def test_no_entity_cancels_a_message_of_another() -> None:
    app, entity = opened()
    app.send(entity, Plan(to="a"))
    app.send(entity, Withdraw(by="b", ids=diary(app, entity).planned))
    assert diary(app, entity, "b").told == [False]
    app.advance(LONG)
    assert diary(app, entity).notes == 1


def test_messages_are_released_by_their_times_and_not_by_the_order_of_their_sending() -> None:
    app, entity = opened()
    for days in (6, 2, 4):
        app.send(entity, Plan(days=days, padding=str(days)))
    app.advance(days=3)
    assert [note.padding for note in notes(app)] == ["2"]
    app.advance(days=4)
    assert [note.padding for note in notes(app)] == ["2", "4", "6"]


def test_more_messages_than_one_commit_releases_come_all() -> None:
    app, entity = opened()
    for number in range(105):
        app.send(entity, Plan(to="b", days=1 + number / 10_000))
    app.advance(days=2)
    assert diary(app, entity, "b").notes == 105


def test_the_age_of_a_kept_message_counts_from_its_release() -> None:
    """A foreign message older than the retention is refused, so a kept one has to be young when it is released."""
    app, entity = opened(inner=False)
    app.send(entity, Plan(days=40))
    app.advance(days=41)
    assert (diary(app, entity).notes, app.parked()) == (1, ())


def test_a_deleted_entity_still_sends_what_it_kept_and_stays_deleted() -> None:
    app, entity = opened()
    app.send(entity, Plan(to="b"))
    app.send(entity, Close())
    app.advance(LONG)
    assert diary(app, entity, "b").notes == 1
    assert app.state(entity, "a") is None


def test_a_message_too_large_for_its_queue_waits_in_a_blob() -> None:
    app, entity = opened(blobs=True)
    app.send(entity, Plan(padding="x" * 100_000))
    app.advance(LONG)
    assert len(notes(app)[0].padding) == 100_000


def test_an_entity_without_its_documents_keeps_what_it_has_and_goes_on() -> None:
    """Another program has deleted the document; the sweeper cannot tell that from an old view, and the audit can."""
    app, entity = opened()
    app.send(entity, Plan(days=0))
    kept = tuple(item.tx for item in ledger(app, entity).kept)
    app.host.accounts.documents.perform(DeleteStaged(entity.ref("a"), kept))
    app.advance(minutes=3)
    assert len(ledger(app, entity).kept) == 1
    ((where, why),) = app.run(app.once.sweep()).failed
    assert (where, "is due" in why, "was not found" in why) == (entity.ref("a").key, True, True)
    app.send(entity, Withdraw())
    assert diary(app, entity).told == [True]
    assert app.run(app.once.sweep()).failed == ()


def test_messages_that_cannot_be_released_do_not_keep_others_waiting() -> None:
    """As many as one commit releases are due before another one, and their documents are gone."""
    app, entity = opened()
    for number in range(MOST_RELEASED + 1):
        app.send(entity, Plan(to="b", days=1 + number / 10_000))
    gone = tuple(item.tx for item in ledger(app, entity).kept[:MOST_RELEASED])
    app.host.accounts.documents.perform(DeleteStaged(entity.ref("a"), gone))
    app.advance(days=2)
    assert diary(app, entity, "b").notes == 1
    assert len(ledger(app, entity).kept) == MOST_RELEASED


@pytest.mark.parametrize("strategy", [Colocated(), VersionStream()])
@pytest.mark.parametrize("asked", [Plan(), Withdraw(ids=["any"])])
def test_an_entity_with_another_strategy_commits_nothing(strategy: Any, asked: Any) -> None:
    """The message goes back to its queue until the configuration is right, as with every `ConfigurationError`."""
    app, entity = opened(strategy)
    app.send(entity, asked)
    assert app.state(entity, "a") is None


def test_a_message_for_a_destination_that_is_gone_stays_kept_and_others_are_released() -> None:
    app, entity = opened()
    app.send(entity, Plan(days=0))
    app.send(entity, Plan(days=0))
    routes = app.host.parts.routes
    limits, limit = routes.limits, routes.limits["notes"]
    assert isinstance(limits, dict)
    del limits["notes"]
    app.advance(minutes=3)
    swept = app.run(app.once.sweep())
    assert [reason.partition(":")[0] for _, reason in swept.failed] == ["UnknownDestination"]
    limits["notes"] = limit
    app.advance(minutes=2)
    assert diary(app, entity).notes == 2


class TestExplore:
    def test_a_kept_message_is_released_before_it_is_cancelled_or_never(self) -> None:
        app, entity = opened()
        seen = set()

        def judge(moment: Any) -> bool:
            state = moment.state(entity, "a") or Diary()
            arrived = len(moment.outputs("notes"))
            seen.add((tuple(state.told), arrived))
            return arrived + sum(state.told) <= 1

        explore(app, [("notes", Plan()), (entity, Withdraw())], judge, faults=0, instances=1)
        assert {((True,), 0), ((False,), 1), ((), 1), ((), 0)} <= seen

    def test_a_message_that_was_kept_before_the_exploration_may_be_released_at_any_moment(self) -> None:
        app, entity = opened()
        app.send(entity, Plan())

        explore(app, [], in_the_end=lambda moment: len(moment.outputs("notes")) == 1, faults=0, instances=1)
