"""`exactlyonce.testing.run`: business code without a store."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Context, Destination
from exactlyonce.errors import NoStateReturned, UnknownDestination
from exactlyonce.testing import Sent, WrittenOnce, run
from tests.samples import Account, Deposit


def sending(state: Account, given: Deposit, context: Context) -> Account:
    context.send("anywhere", Deposit("b"), delay=timedelta(seconds=5))
    context.announce(Deposit("c"))
    return Account(state.total + given.amount)


def test_run_returns_the_new_state_and_the_sent_messages() -> None:
    ran = run(sending, Account(1), Deposit("a", 2))
    assert ran.state == Account(3)
    assert ran.sent == (Sent("anywhere", Deposit("b"), timedelta(seconds=5)), Sent(None, Deposit("c")))
    assert ran.messages == (Deposit("b"), Deposit("c"))
    assert ran.deleted is False


def test_a_destination_may_be_given_in_place_of_its_name_and_others_are_refused() -> None:
    mail = Destination("mail")

    def posting(state: Account, given: Deposit, context: Context) -> Account:
        context.send(mail, given)
        return state

    sent = (Sent("mail", Deposit("a")),)
    assert run(posting, Account(), Deposit("a")).sent == sent
    assert run(posting, Account(), Deposit("a"), destinations=(mail,)).sent == sent
    with pytest.raises(UnknownDestination, match="There is no destination 'mail'; known are: post"):
        run(posting, Account(), Deposit("a"), destinations=(Destination("post"),))


def test_a_message_that_the_handler_changes_later_is_recorded_as_sent() -> None:
    def changing(state: Account, given: Deposit, context: Context) -> Account:
        context.send("anywhere", given)
        given.amount = 7
        context.announce(given)
        given.amount = 9
        return state

    assert run(changing, Account(), Deposit("a", 1)).messages == (Deposit("a", 1), Deposit("a", 7))


def test_the_same_arguments_give_the_same_result() -> None:
    def chancy(state: Account, given: Deposit, context: Context) -> Account:
        return Account(note=f"{context.new_id()} {context.random.random()} {context.now}")

    first, again = (run(chancy, Account(), Deposit("a")) for _ in range(2))
    assert first == again
    for other in ({"message_id": "m-2"}, {"source": "app"}, {"now": datetime(2027, 1, 1, tzinfo=timezone.utc)}):
        assert run(chancy, Account(), Deposit("a"), **other) != first


def test_a_written_blob_is_recorded_with_its_address() -> None:
    def writing(state: Account, given: Deposit, context: Context) -> Account:
        address = context.write_once("letters/a.txt", "ÄÖÜ", content_type="text/plain")
        context.write_once("b", b"\x00")
        return Account(note=address)

    ran = run(writing, Account(), Deposit("a"))
    first, second = ran.blobs
    assert first == WrittenOnce("letters/a.txt", "ÄÖÜ".encode(), "text/plain", ran.state.note)
    assert (second.name, second.content, second.content_type) == ("b", b"\x00", "application/octet-stream")
    assert first.address.endswith("/letters/a.txt")
    assert run(writing, Account(), Deposit("a")) == ran


def test_no_result_is_an_error_unless_the_entity_was_deleted() -> None:
    def forgetful(state: Account, given: Deposit, context: Context) -> Any:
        return None

    def deleting(state: Account, given: Deposit, context: Context) -> Any:
        context.delete()

    with pytest.raises(NoStateReturned):
        run(forgetful, Account(), Deposit("a"))
    assert run(deleting, Account(), Deposit("a")).deleted is True


def failing(context: Context) -> None:
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("act", "error", "told"),
    [
        (failing, KeyError, "mine"),
        (lambda context: context.write_once("../a", b""), ValueError, "name of a blob"),
        (lambda context: context.send("anywhere", Account()), ConfigurationError, "Account"),
    ],
    ids=["an exception of the handler", "a name that no blob can have", "a message that is not registered"],
)
def test_an_error_is_raised_as_it_would_be_later(act: Any, error: type[Exception], told: str) -> None:
    def acting(state: Account, given: Deposit, context: Context) -> Account:
        act(context)
        return state

    with pytest.raises(error, match=told):
        run(acting, Account(), Deposit("a"))
