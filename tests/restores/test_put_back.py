"""Documents are put back, deleted or written by others, while queues go on: each payment counts once, or is refused."""

from __future__ import annotations

import pytest

from tests.restores.bank import BAD, TAKEN, Bank

OTHERS = (0, 40)
"""Messages between the two copies: none, and more than a ledger has marks."""


def test_what_a_source_sends_after_it_was_put_back_arrives() -> None:
    bank = Bank()
    bank.pay_many("early", 50)
    saved = bank.backup("source")
    bank.pay_many("late", 100)
    bank.restore(saved, "source")
    bank.pay_many("new", 120)
    assert bank.total() == 50 + 100 + 120
    assert not bank.app.parked()
    assert not bank.violations()


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("others", OTHERS)
def test_commands_that_come_again_after_everything_was_put_back_pay_once(others: int, timed: bool) -> None:
    bank = Bank(timed=timed)
    bank.pay_many("early", 3)
    saved = bank.backup()
    bank.hold()
    bank.pay("o6", 10)
    bank.pay("o7", 100)
    in_flight = list(bank.waiting)
    bank.let_go()
    bank.restore(saved)
    assert [bank.again(payment) for payment in in_flight] == [TAKEN, TAKEN]
    bank.pay_many("other", others, source="t")
    assert [bank.pay("o7", 100), bank.pay("o6", 10)] == [TAKEN, TAKEN]
    assert bank.total() == 3 + 110 + others
    assert not bank.app.parked()
    assert not bank.violations()
    assert {item.id for item in in_flight} <= {item.id for item in bank.sent()}


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("others", OTHERS)
def test_payments_in_flight_come_after_the_commands_that_came_again(others: int, timed: bool) -> None:
    bank = Bank(timed=timed)
    bank.pay_many("early", 3)
    saved = bank.backup()
    bank.hold()
    bank.pay("o6", 10)
    in_flight = list(bank.waiting)
    bank.let_go()
    bank.restore(saved)
    assert bank.pay("o6", 10) == TAKEN
    bank.pay_many("other", others, source="t")
    assert bank.again(in_flight[0]) == TAKEN
    assert bank.total() == 13 + others
    assert not bank.violations()


@pytest.mark.parametrize("times", [33, 40, 100])
def test_an_entity_whose_document_was_deleted_is_refused(times: int) -> None:
    bank = Bank()
    bank.pay_many("early", times + 20)
    bank.write("account", "r", None)
    assert bank.pay("new") == "LedgerRemoved", "the order is done; its payment is refused"
    assert bank.raw("source", "s")["orders"] == times + 21
    assert bank.again(bank.sent()[0]) == "LedgerRemoved"
    assert bank.app.state(bank.accounts, "r") is None
    bank.later(days=200)
    assert bank.again(bank.sent()[30]) != TAKEN
    assert bank.app.state(bank.accounts, "r") is None


@pytest.mark.parametrize("times", [5, 15, 16, 17, 40])
def test_an_entity_whose_ledger_was_removed_is_refused(times: int) -> None:
    bank = Bank()
    bank.pay_many("early", times)
    document = bank.raw("account", "r")
    del document["_ledger"]
    bank.write("account", "r", document)
    assert bank.again(bank.sent()[0]) in ("DamagedDocument", "LedgerRemoved")
    assert bank.total() == times


def test_messages_that_are_parked_cost_the_memory_of_those_after_them_nothing() -> None:
    bank = Bank()
    for number in range(100):
        assert bank.pay(f"bad{number}", BAD) == "HandlerFailed"
        assert bank.pay(f"good{number}") == TAKEN
    assert bank.total() == 100
    assert len(bank.app.parked()) == 100
    assert all(bank.again(payment) == TAKEN for payment in bank.sent()[::2] if payment.data.value["amount"] != BAD)
    assert bank.total() == 100


def test_a_hub_of_very_many_receivers_keeps_a_page_for_many_messages_and_no_document_for_each() -> None:
    bank = Bank()
    for turn in range(3):
        for receiver in range(260):
            assert bank.pay(f"o{turn}-{receiver}", to=f"r{receiver}") == TAKEN
    pages = bank.library("page:")
    assert sum(map(len, pages.values())) <= 3 * 260 / 16
    assert len(bank.raw("source", "s")["_ledger"]["marks"]) < 3_500


@pytest.mark.parametrize("lost", [20, 60, 120])
def test_an_entity_that_was_put_back_handles_what_comes_again_and_takes_nothing_twice(lost: int) -> None:
    bank = Bank()
    bank.pay_many("early", 40)
    saved = bank.backup("account")
    bank.pay_many("late", lost)
    late = bank.sent()[-lost:]
    bank.restore(saved, "account")
    assert bank.total() in (40, 41), "the sweeper sends the last payment again, if no book proves it"
    bank.pay_many("new", 30)
    for payment in late:
        assert bank.again(payment) == TAKEN
    bank.pay_many("newer", 60)
    for payment in late:
        assert bank.again(payment) == TAKEN
    assert bank.total() == 40 + 30 + lost + 60
    assert not bank.app.parked()
    assert not bank.violations()


def test_where_the_library_was_put_back_old_copies_are_refused_and_new_timed_messages_are_taken() -> None:
    bank = Bank()
    bank.pay_many("early", 40)
    saved = bank.backup("library")
    bank.pay_many("late", 80)
    bank.restore(saved, "library")
    assert bank.again(bank.sent()[50]) == "DatabaseRestored"
    assert bank.pay("new", 5) == TAKEN
    assert bank.total() == 40 + 80 + 5
    assert not bank.violations()
