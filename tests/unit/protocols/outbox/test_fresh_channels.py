"""Where receivers forget channels, sources begin fresh ones in time, and a channel whose beginning cannot be is refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest

from exactlyonce import Colocated, ConfigurationError, Context, Destination, Entity, Outbox, Resequencer, VersionStream
from exactlyonce import message as message_of
from exactlyonce.attempt import Strategy
from exactlyonce.errors import ForgottenChannel, MessageError, MessageFromTheFuture
from exactlyonce.handling.routes import Routes
from exactlyonce.records.places import Place
from exactlyonce.records.sequences import Sequence, Sequences, channel_id, milliseconds
from exactlyonce.values.identity import EntityRef, Origin
from tests.unit.protocols.outbox.test_numbered import key, numbered
from tests.unit.script import AT, Script, attempt

DAY, MOMENT = timedelta(days=1), timedelta(milliseconds=1)
MONTH = 30 * DAY
FORGETFUL = Outbox(forget_after=MONTH)
TX = "9f" * 16


@message_of("fresh.hit")
@dataclass
class Hit:
    player: str = "p-1"


@dataclass
class Board:
    hits: int = 0


def boards(strategy: Strategy) -> Entity[Board]:
    kind = Entity("board", state=Board, container="boards", strategy=strategy)

    @kind.handles(Hit, key=lambda hit: hit.player)
    def hit(state: Board, _: Hit, __: Context) -> Board:
        return Board(state.hits + 1)

    return kind


def routes(destination: Destination, *entities: Entity[Board]) -> Routes:
    return Routes.to((destination,), {destination.name: 2_000}, entities=entities)


def begun(age: timedelta, now: datetime = AT) -> str:
    """A channel that began so long ago."""
    return channel_id(now - age, TX, 0)


class TestTheSetting:
    @pytest.mark.parametrize("age", [timedelta(0), 2 * DAY - MOMENT])
    def test_an_age_at_which_clocks_decide_is_refused(self, age: timedelta) -> None:
        with pytest.raises(ConfigurationError, match="forget_after of an outbox is at least 2 days"):
            Outbox(forget_after=age)

    def test_two_days_are_enough(self) -> None:
        assert Outbox(forget_after=2 * DAY).forget_after == 2 * DAY

    @pytest.mark.parametrize(
        "strategy", [Outbox(), Outbox.embedded(), Colocated(), VersionStream(), Resequencer()], ids=repr
    )
    def test_nobody_forgets_unless_told_to(self, strategy: Strategy) -> None:
        assert strategy.forget_after is None
        assert not routes(Destination("boards", to=boards(strategy)), boards(strategy)).forgetting


class TestDestinations:
    @pytest.mark.parametrize("to", [boards(FORGETFUL), "board"])
    def test_what_the_receiver_of_the_same_application_forgets_is_known(self, to: Entity[Board] | str) -> None:
        assert routes(Destination("boards", to=to), boards(FORGETFUL)).forgetting == {"boards": MONTH}

    def test_what_another_application_forgets_is_declared(self) -> None:
        destination = Destination("boards", to="elsewhere", entity_by=lambda hit: hit.player, forget_after=MONTH)
        assert routes(destination).forgetting == {"boards": MONTH}

    def test_without_a_receiver_nothing_can_be_forgotten(self) -> None:
        with pytest.raises(ConfigurationError, match="does not say which entity type it leads to"):
            Destination("boards", forget_after=MONTH)

    def test_a_receiver_that_takes_messages_in_their_order_forgets_no_channel(self) -> None:
        with pytest.raises(ConfigurationError, match="both ordered= and forget_after="):
            Destination("boards", to="elsewhere", ordered=True, forget_after=MONTH)


class TestSources:
    def place(self, strategy: Strategy, age: timedelta) -> Place | None:
        """The place of the next message after one in a channel of this age."""
        sequences: Sequences = (Sequence("boards", "board/p-1", begun(age), 4),)
        origin = Origin(EntityRef("range", ("r",), "r"), "web/m-1")
        context = Context(origin, AT, routes(Destination("boards", to=boards(strategy))), sequences, TX)
        context.send("boards", Hit())
        return context.outputs[0].place

    def test_a_channel_of_less_than_half_the_age_goes_on(self) -> None:
        assert self.place(FORGETFUL, MONTH / 2) == Place(begun(MONTH / 2), "board/p-1", 5)

    def test_in_place_of_an_older_one_a_fresh_one_begins(self) -> None:
        assert self.place(FORGETFUL, MONTH / 2 + MOMENT) == Place(begun(timedelta(0)), "board/p-1", 1)

    def test_to_a_receiver_that_never_forgets_every_channel_goes_on(self) -> None:
        assert self.place(Outbox(), 900 * DAY) == Place(begun(900 * DAY), "board/p-1", 5)

    def test_no_message_waits_for_so_long_that_its_channel_may_be_forgotten(self) -> None:
        origin = Origin(EntityRef("range", ("r",), "r"), "web/m-1")
        receiver = boards(Outbox(forget_after=4 * DAY))
        context = Context(origin, AT, routes(Destination("boards", to=receiver)), (), TX)
        context.send("boards", Hit(), delay=DAY)
        with pytest.raises(
            ValueError, match="forgets channels after 4 days, 0:00:00, so a delay is at most 1 day, 0:00:00"
        ):
            context.send("boards", Hit(), delay=DAY + MOMENT)


class TestFirstContact:
    def refusal(self, strategy: Strategy, channel: str) -> MessageError | None:
        """Why the first message of a channel is not taken; None if it is."""
        played = Script().play(attempt(strategy, numbered(1, channel)))
        error = dict(played.finished.failed).get(key(1, channel))
        assert (error is None) == (played.finished.processed == (key(1, channel),))
        assert error is None or isinstance(error, MessageError)
        return error

    @pytest.mark.parametrize("age", [-DAY, timedelta(0), MONTH])
    def test_a_beginning_that_can_be_is_taken(self, age: timedelta) -> None:
        assert self.refusal(FORGETFUL, begun(age)) is None

    def test_one_more_than_a_day_ahead_is_refused_as_an_error_of_a_clock(self) -> None:
        error = self.refusal(FORGETFUL, begun(-DAY - MOMENT))
        assert isinstance(error, MessageFromTheFuture)
        assert "Set the clock of its source" in str(error)

    def test_one_that_would_be_forgotten_is_refused_as_an_error_of_a_clock(self) -> None:
        error = self.refusal(FORGETFUL, begun(MONTH + MOMENT))
        assert isinstance(error, ForgottenChannel)
        assert "Is the clock of its source behind?" in str(error)
        assert "requeue --as-new" in str(error)

    @pytest.mark.parametrize("channel", ["c1", f"{2**48 - 1:012x}", f"{0:012x}"])
    def test_a_receiver_that_never_forgets_does_not_look_at_clocks(self, channel: str) -> None:
        assert self.refusal(Outbox(), channel) is None

    def test_an_id_that_says_no_time_is_taken(self) -> None:
        assert self.refusal(FORGETFUL, "c1") is None

    def test_the_latest_beginning_that_an_id_can_say_is_refused(self) -> None:
        assert isinstance(self.refusal(FORGETFUL, f"{2**48 - 1:012x}"), MessageFromTheFuture)

    def test_a_known_channel_is_never_asked_for_its_age(self) -> None:
        script = Script()
        channel = begun(900 * DAY)
        script.play(attempt(Outbox(), numbered(1, channel)))
        assert script.play(attempt(FORGETFUL, numbered(2, channel))).finished.processed == (key(2, channel),)


def test_milliseconds_are_those_that_ids_say() -> None:
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 1, 234_000, tzinfo=timezone.utc)) == 1_234
