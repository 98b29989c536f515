"""The judge of boards convicts whatever is heard out of order, twice or not at all, and gaps that nobody reports."""

from __future__ import annotations

import json
from typing import Any

from verification.simulation.history import NOTHING, History, Order, Promises, execute
from verification.simulation.judge import judge

BOARD = "board-1"
SKIPPING = Promises(complete=False)
IN_ONE_ORDER = Promises(one_order=True)


def seconds(at: float) -> str:
    return f"2026-01-01T00:00:{at:09.6f}Z"


class Heard:
    """A history in the making, of tallies that show everything to one board."""

    def __init__(self, promises: Promises | None = None) -> None:
        self.history = History(lambda: 0.0, promises)
        self.states = {"7": NOTHING, "8": NOTHING, BOARD: NOTHING}

    def shown(self, tally: str, *numbers: int, at: float = 0.0) -> list[Order]:
        """Orders that took place in a tally, one for each number that what it shows is given."""
        return [self._shown(tally, number, at) for number in numbers]

    def _shown(self, tally: str, number: int, at: float) -> Order:
        order = Order(f"web-{len(self.history.orders)}", tally, 0, shows=(BOARD,))
        self.history.accepted(order)
        (data,) = self._saved(order)
        place = {"source": order.tally, "sequence": f"{number:016d}", "partitionkey": BOARD, "time": seconds(at)}
        shown = self.history.published(json.dumps({"specversion": "1.0", **place, "data": data}))
        self.history.acknowledge(order.name)
        assert shown is not None
        self.history.accepted(shown)
        return shown

    def hears(self, *orders: Order) -> Heard:
        """One commit of the board."""
        for order in orders:
            for data in self._saved(order):
                self.history.published(json.dumps({"specversion": "1.0", "data": data}))
            self.history.acknowledge(order.name)
        return self

    def _saved(self, order: Order) -> list[dict[str, Any]]:
        state, outputs = execute(self.states[order.tally], order, order.remembered)
        self.states[order.tally] = state
        body = {"count": state.count, "chain": state.chain, "recent": list(state.recent)}
        self.history.written(order.tally, json.dumps(body))
        return outputs

    def findings(self) -> set[tuple[str, str]]:
        return {(found.property, found.tally) for found in judge(self.history)}


def test_a_board_that_hears_each_source_in_its_order_is_acquitted() -> None:
    heard = Heard()
    one, two = heard.shown("7", 1, 2)
    (other,) = heard.shown("8", 1)
    assert heard.hears(one).hears(other, two).findings() == set()


def test_what_is_heard_before_its_turn_is_found() -> None:
    heard = Heard()
    one, two = heard.shown("7", 1, 2)
    assert heard.hears(two).hears(one).findings() == {("in_sequence", BOARD)}


def test_what_is_heard_twice_is_found() -> None:
    heard = Heard()
    (one,) = heard.shown("7", 1)
    assert ("at_most_one_state_change", BOARD) in heard.hears(one, one).findings()


def test_what_is_never_heard_is_found_though_it_was_acknowledged() -> None:
    heard = Heard()
    one, two, three = heard.shown("7", 1, 2, 3)
    heard.history.acknowledge(two.name)
    assert heard.hears(one, three).findings() == {("in_sequence", BOARD), ("nothing_lost", BOARD)}


def test_numbers_in_another_order_than_what_they_number_took_place_in_are_found() -> None:
    heard = Heard()
    two, one = heard.shown("7", 2, 1)
    assert heard.hears(one, two).findings() == {("in_sequence", "7")}


def test_a_number_that_was_left_out_or_given_twice_is_found() -> None:
    heard = Heard()
    one, three = heard.shown("7", 1, 3)
    assert ("in_sequence", "7") in heard.hears(one, three).findings()
    heard = Heard()
    one, again = heard.shown("8", 1, 1)
    assert ("in_sequence", "8") in heard.hears(one, again).findings()


def test_a_number_may_be_given_up_where_that_was_asked_for() -> None:
    for promises, findings in ((SKIPPING, set()), (None, {("nothing_lost", BOARD)})):
        heard = Heard(promises)
        one, _, three = heard.shown("7", 1, 2, 3)
        heard.history.gave_up((BOARD, "7", 2))
        assert heard.hears(one, three).findings() == findings


def test_what_comes_after_it_was_given_up_has_to_be_reported_and_must_not_take_place() -> None:
    heard = Heard(SKIPPING)
    one, two, three = heard.shown("7", 1, 2, 3)
    heard.history.gave_up((BOARD, "7", 2))
    heard.hears(one, three)
    heard.history.acknowledge(two.name)
    assert heard.findings() == {("reported", BOARD)}
    assert heard.history.came_late((BOARD, "7", 2)) == "came after it was given up"
    assert heard.findings() == set()
    assert ("no_ghost_change", BOARD) in heard.hears(two).findings()


def test_a_number_that_was_never_sent_cannot_be_given_up() -> None:
    heard = Heard(SKIPPING)
    (one,) = heard.shown("7", 1)
    heard.history.gave_up((BOARD, "7", 2))
    assert heard.hears(one).findings() == {("in_sequence", BOARD)}


def test_what_is_heard_after_something_later_has_to_be_reported_where_there_is_one_order() -> None:
    for promises, findings in ((None, set()), (IN_ONE_ORDER, {("one_order", BOARD)})):
        heard = Heard(promises)
        (late,), (early,) = heard.shown("7", 1, at=2), heard.shown("8", 1, at=1)
        assert heard.hears(late, early).findings() == findings
    assert heard.history.came_late((BOARD, "8", 1)) == "came too late for the one order"
    assert heard.findings() == set()


def test_what_is_in_time_must_not_be_reported_as_late() -> None:
    heard = Heard(IN_ONE_ORDER)
    (early,), (late,) = heard.shown("7", 1, at=1), heard.shown("8", 1, at=2)
    heard.hears(early, late)
    assert heard.findings() == set()
    heard.history.came_late((BOARD, "8", 1))
    assert heard.findings() == {("one_order", BOARD)}


def test_of_one_time_the_source_decides() -> None:
    heard = Heard(IN_ONE_ORDER)
    (one,), (other,) = heard.shown("7", 1), heard.shown("8", 1)
    assert heard.hears(other, one).findings() == {("one_order", BOARD)}
