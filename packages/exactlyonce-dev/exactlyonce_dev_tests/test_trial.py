"""A story of each kind, as it was seen, is written as a test that passes, with no more than the story needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exactlyonce.errors import ExactlyOnceError, HandlerFailed, KeyReused
from exactlyonce.testing import Request, Response
from exactlyonce_dev.literals import Names
from exactlyonce_dev_tests import club
from exactlyonce_dev_tests.club import Gift, Join, Leave, Recharge, Visit, guestbooks, members, payments, to_boards
from exactlyonce_dev_tests.recorded import START, Recorded, run

COMMIT = "Commit: save the entity if it is unchanged"


def charged(request: Request) -> Response:
    return Response(201, {"points": request.body["points"]})


class Club(Recorded):
    """The club, and what its visitors do."""

    def __init__(self, service: Callable[[Request], Response] = charged) -> None:
        named = club.DESTINATIONS
        super().__init__(
            Names.of([club]), *club.ENTITIES, destinations=named, apis={payments: service}, now=START, slow=True
        )
        self.app.advance(seconds=11)

    def join(self, member: str = "ann", key: str = "join", name: str = "Ann") -> None:
        self.app.ask(members, Join(member=member, name=name), key=key, source="http")
        self.app.advance(seconds=2)

    def recharge(self, points: int, member: str = "ann", key: str = "recharge") -> None:
        self.app.ask(members, Recharge(member=member, points=points), key=key, source="http")
        self.app.advance(seconds=2)

    def give(self, points: int, giver: str = "ann", to: str = "bob", key: str = "gift") -> None:
        self.app.ask(members, Gift(member=giver, to=to, points=points), key=key, source="http")
        self.app.advance(seconds=2)

    def visit(self, id: str = "visit", member: str = "ann") -> None:
        self.app.send(guestbooks, Visit(member=member, bar=True), message_id=id, source="door")
        self.app.advance(seconds=2)


@pytest.fixture
def seen() -> Club:
    return Club()


def copied(seen: Club, message: str | None = None, *, exactly: bool = False) -> str:
    """The text of the test that is written of a message: it passes, and with the times of the story if it does exactly."""
    written = seen.written(message)
    assert written.problem == ""
    assert not (exactly and written.notes)
    run(written.text)
    return written.text


def test_a_request_is_copied_with_its_answer_and_the_time_in_its_state(seen: Club) -> None:
    seen.join()
    text = copied(seen, exactly=True)
    assert 'now=datetime.fromisoformat("2026-03-04T05:06:18.891011+00:00")' in text
    assert "assert (answered.status, answered.body) == (201, '{\"points\":0}')" in text
    assert "boards" not in text


def test_a_refused_key_is_expected_to_be_refused(seen: Club) -> None:
    seen.join()
    with pytest.raises(KeyReused):
        seen.join(name="Bob")
    seen.join()
    text = copied(seen)
    assert "    with raises(KeyReused):  # Another request had its key.\n" in text
    assert text.count("app.ask(") == 3


def test_a_service_answers_as_it_was_seen_to_answer(seen: Club) -> None:
    seen.join()
    seen.recharge(50)
    text = copied(seen, "http/recharge")
    assert 'apis={payments: lambda _: Response(201, {"points": 50})}' in text
    assert text.count("app.ask(") == 1
    assert 'app.given(\n        members,\n        "ann",' in text


def test_a_story_with_a_message_on_its_way_says_where_the_message_goes(seen: Club) -> None:
    seen.join()
    seen.join("bob", key="bob", name="Bob")
    seen.recharge(50)
    seen.app.slow(to_boards, timedelta(), timedelta(seconds=5))
    seen.give(7)
    written = seen.written("http/gift")
    assert written.problem
    assert written.notes == (
        "A message is still on its way to boards: copy the story again when the message has been processed.",
    )
    seen.app.advance(seconds=5)
    assert copied(seen, "http/gift")


def test_services_answer_each_call_as_it_was_answered(seen: Club) -> None:
    seen.app.trouble(payments, timedelta(seconds=3))
    seen.app.ask(members, Recharge(member="ann", points=5), key="five", source="http")
    seen.recharge(10, key="ten")
    seen.app.advance(seconds=5)
    text = copied(seen, "http/five")
    assert "apis={payments: lambda request: replies[request.key]}" in text
    assert 'app.state(members, "ann") == Member(points=15)' in text


def test_tries_of_a_call_that_went_wrong_go_wrong_again(seen: Club) -> None:
    seen.join()
    seen.app.trouble(
        payments, "down", Response(503, headers={"Retry-After": "7"}), "lost", timedelta(seconds=31), Response(500)
    )
    seen.recharge(20)
    seen.app.advance(minutes=5)
    text = copied(seen, "http/recharge")
    assert (
        'app.trouble(payments, "down", Response(503, headers={"Retry-After": "7"}), "lost", 2 * payments.timeout, '
        "Response(500))"
    ) in text


def test_an_answer_that_is_no_json_and_its_headers_are_copied() -> None:
    headers = {"Content-Type": "text/plain; charset=utf-8", "Location": "/charges/1", "X-Trace": "1"}
    seen = Club(lambda _: Response(404, "no such card", headers))
    seen.recharge(20)
    text = copied(seen, "http/recharge")
    assert '"no such card"' in text
    assert '"Location": "/charges/1"' in text
    assert "X-Trace" not in text
    (reply,) = (row["envelope"]["data"] for row in seen.story.rows() if row["type"] == "club.recharged")
    assert reply["body"] == "no such card"  # And not JSON.


def test_a_gift_over_two_entities_begins_with_what_it_found(seen: Club) -> None:
    seen.join()
    seen.join("bob", "join-bob", "Bob")
    seen.recharge(50)
    for number in range(5):
        seen.give(1, key=f"gift-{number}")
    text = copied(seen, "http/gift-3", exactly=True)
    assert text.count("app.ask(") == 1
    assert "points=47" in text  # Not what there is now.
    assert 'points={"ann": 46, "bob": 4}' in text
    assert "app.slow(to_members, timedelta(seconds=" in text  # Else `latest_gift` would be another.


def test_a_reminder_is_released_when_it_was(seen: Club) -> None:
    seen.join()
    seen.app.advance(minutes=65)
    text = copied(seen, exactly=True)
    assert "Until the sweeper publishes what is due." in text
    assert "level=" not in text.rpartition("assert app.state")[2]


def test_a_message_whose_handler_raises_is_expected_to_be_parked(seen: Club) -> None:
    seen.join()
    seen.recharge(5)
    seen.app.send(members, Leave(member="ann"), message_id="leave", source="web")
    with pytest.raises(HandlerFailed):
        seen.app.advance(seconds=5)
    text = copied(seen, "web/leave")
    assert "with raises(HandlerFailed):  # Its handler raises." in text
    assert 'assert [one.id for one in app.parked()] == ["web/leave"]' in text


def test_a_request_whose_handler_raises_is_not_parked(seen: Club) -> None:
    seen.join()
    seen.recharge(5)
    with pytest.raises(HandlerFailed):
        seen.app.ask(members, Leave(member="ann"), key="leave", source="http")
    text = copied(seen, "http/leave")
    assert "with raises(HandlerFailed):  # A handler raises." in text
    assert "assert app.parked() == ()" in text


def test_an_entity_that_is_deleted_is_absent_at_the_end(seen: Club) -> None:
    seen.join()
    seen.app.send(members, Leave(member="ann"), message_id="leave", source="web")
    seen.app.advance(seconds=2)
    text = copied(seen, "web/leave")
    assert 'assert app.state(members, "ann") is None' in text


def test_copies_of_messages_and_events_of_an_entity_are_copied(seen: Club) -> None:
    seen.visit("first")
    seen.visit("second")
    seen.visit("second")
    text = copied(seen, "door/second")
    assert text.count("app.send(") == 2
    assert "Guestbook(visits=2" in text


def test_a_read_model_that_got_an_output_twice_is_copied(seen: Club) -> None:
    seen.recharge(5)
    seen.app.send_again("boards")
    seen.app.advance(seconds=2)
    text = copied(seen)
    assert 'app.send_again("boards", 0)' in text
    assert 'app.state(boards, "all") == Board(points={"ann": 5})' in text


def test_messages_that_came_between_are_left_out_unless_they_matter(seen: Club) -> None:
    seen.join()
    seen.recharge(50)
    seen.app.trouble(payments, timedelta(seconds=25))
    seen.app.ask(members, Recharge(member="ann", points=7), key="slow", source="http")
    with pytest.raises(HandlerFailed):
        seen.app.ask(members, Leave(member="ann"), key="leave", source="http")
    seen.give(1)
    seen.app.advance(seconds=30)
    text = copied(seen, "http/slow")
    assert "Gift(" in text
    assert "Leave(" not in text


def test_a_message_that_waited_for_another_comes_after_it(seen: Club) -> None:
    seen.join()
    seen.recharge(5)
    with pytest.raises(HandlerFailed):
        seen.app.ask(members, Leave(member="ann"), key="leave", source="http")
    seen.give(5)
    seen.app.ask(members, Leave(member="ann"), key="leave", source="http")
    text = copied(seen, "http/leave")
    assert text.index("Gift(") < text.index("Leave(")


def unruly(request: Request) -> Response:
    return charged(request) if request.body["points"] < 50 else Response(402, {"sorry": True})


def test_a_message_that_came_between_two_tries_of_a_call_comes_between_them(seen: Club) -> None:
    seen.app.trouble(payments, "down")
    seen.app.ask(members, Recharge(member="ann", points=5), key="five", source="http")
    seen.app.ask(members, Join(member="ann", name="Ann"), key="join", source="http")
    seen.app.advance(seconds=10)
    text = copied(seen, "http/five")
    assert text.index("Join(") < text.index("app.advance(")
    assert "points=5" in text.rpartition("assert app.state(members")[2]


def failing_later(seen: Club, message: str) -> str:
    """Let time pass until a handler raises; the test that is written of it then, which passes."""
    with pytest.raises(HandlerFailed):
        seen.app.advance(minutes=3)
    return copied(seen, message)


def test_a_reply_whose_handler_raises_after_a_pause_is_expected_to_raise_there() -> None:
    seen = Club(unruly)
    seen.app.trouble(payments, "down")
    seen.app.ask(members, Recharge(member="ann", points=60), key="sixty", source="http")
    text = failing_later(seen, "http/sixty")
    assert "    with raises(HandlerFailed):  # A handler raises.\n        app.advance(" in text


def test_replies_that_came_in_another_order_than_their_calls_come_in_that_order() -> None:
    seen = Club(unruly)
    for number, points in enumerate((5, 60, 60)):
        seen.app.ask(members, Recharge(member="ann", points=points), key=f"k{number}", source="http")
    assert "app.slow(" in failing_later(seen, "http/k0")


def test_a_story_that_cannot_be_played_says_so(seen: Club) -> None:
    seen.join()
    for row in seen.story.whole()["rows"]:
        row["after"] = {**row["after"], "points": 7}
    written = seen.written()
    assert "AssertionError" in written.problem
    assert written.notes == ("member/ann ends otherwise in memory than it did here.",)


Action = tuple[str, ...]
WHO = st.sampled_from(("ann", "bob", "cy"))
ACTIONS = st.one_of(
    st.tuples(st.just("join"), WHO, st.sampled_from(("1", "2"))),
    st.tuples(st.just("recharge"), WHO, st.sampled_from(("5", "60"))),
    st.tuples(st.just("give"), WHO, WHO, st.sampled_from(("1", "9"))),
    st.tuples(st.just("leave"), WHO),
    st.tuples(st.just("visit"), WHO, st.sampled_from(("1", "2"))),
    st.tuples(st.just("again"), st.sampled_from(("members", "boards"))),
    st.tuples(st.just("trouble"), st.sampled_from(("down", "lost"))),
    st.tuples(st.just("lose"), st.sampled_from(("reply", "request"))),
    st.tuples(st.just("wait"), st.sampled_from(("0.5", "40", "4000"))),
)


def act(seen: Club, number: int, action: Action) -> None:
    """Do something in the club; it may be refused."""
    kind, *more = action
    app = seen.app
    with suppress(ExactlyOnceError, IndexError):
        if kind == "join":
            app.ask(members, Join(member=more[0], name=more[1]), key=f"join-{more[0]}", source="http")
        elif kind == "recharge":
            app.ask(members, Recharge(member=more[0], points=int(more[1])), key=f"k{number}", source="http")
        elif kind == "give":
            app.ask(members, Gift(member=more[0], to=more[1], points=int(more[2])), key=f"k{number}", source="http")
        elif kind == "leave":
            app.send(members, Leave(member=more[0]), message_id=f"m{number}", source="web")
        elif kind == "visit":
            app.send(guestbooks, Visit(member=more[0]), message_id=f"v-{more[1]}", source="door")
        elif kind == "again":
            app.send_again(more[0])
        elif kind == "trouble":
            app.trouble(payments, more[0])  # type: ignore[arg-type]
        elif kind == "lose":
            app.lose(more[0])  # type: ignore[arg-type]
            seen.story.expect({"reply": "lost-applied", "request": "lost-not-applied"}[more[0]])
        elif kind == "wait":
            app.advance(seconds=float(more[0]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTIONS, min_size=1, max_size=8), st.data())
def test_every_story_of_the_club_is_a_test_that_passes(actions: list[Action], data: st.DataObject) -> None:
    seen = Club(unruly)
    for number, action in enumerate(actions):
        act(seen, number, action)
    with suppress(ExactlyOnceError):
        seen.app.advance(minutes=3)
    rows = [row["message"] for row in seen.story.whole()["rows"] if row.get("envelope")]
    if rows:
        copied(seen, data.draw(st.sampled_from(rows)))
