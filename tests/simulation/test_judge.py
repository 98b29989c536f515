"""The judge convicts each kind of wrong history, acquits the right ones, and knows nothing of the library."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest

from verification.simulation import history, judge
from verification.simulation.history import NOTHING, History, Order, Tally, execute

ONE = Order("web-1", "7")
TWO = Order("web-2", "7", reports=2, relays=("8",))
CLOSE = Order("web-3", "7", closes=True)
REFUSED = Order("web-4", "7", refused=True)
LOOK = Order("web-6", "7", reports=2, looks=True)


def document(state: Tally) -> str:
    body = {"id": "7", "count": state.count, "chain": state.chain, "recent": list(state.recent)}
    return json.dumps({"id": "7"} if state == NOTHING else body)


def text(data: dict[str, Any]) -> str:
    return json.dumps({"specversion": "1.0", "id": data["name"], "data": data})


class Played:
    """A history in the making, of one tally."""

    def __init__(self, *accepted: Order) -> None:
        self.history = History(lambda: 0.0)
        self.state = NOTHING
        for order in accepted:
            self.history.accepted(order)

    def commit(self, *orders: Order, publish: bool = True) -> Played:
        """One write that holds these orders, with all they send."""
        outputs: list[dict[str, Any]] = []
        for order in orders:
            self.state, sent = execute(self.state, order)
            outputs += sent
        self.history.written("7", document(self.state))
        if publish:
            self.publish(outputs)
            self.acknowledge(*orders)
        return self

    def publish(self, outputs: Iterable[dict[str, Any]]) -> Played:
        for data in outputs:
            relayed = self.history.published(text(data))
            if relayed is not None:
                self.history.accepted(relayed)
        return self

    def acknowledge(self, *orders: Order) -> Played:
        for order in orders:
            self.history.acknowledge(order.name)
        return self

    def findings(self) -> set[tuple[str, str]]:
        return {(found.property, found.tally) for found in judge.judge(self.history)}


def test_a_serial_history_is_acquitted() -> None:
    played = Played(ONE, CLOSE).commit(ONE).commit(CLOSE)
    assert played.findings() == set()


def test_what_is_relayed_has_to_take_place_too() -> None:
    assert Played(TWO).commit(TWO).findings() == {("nothing_lost", "8"), ("termination", "8")}


def test_a_life_within_one_commit_is_found_by_its_farewell() -> None:
    played = Played(ONE, CLOSE, other := Order("web-5", "7"))
    assert played.commit(ONE, CLOSE).commit(other).findings() == set()


def test_a_deletion_in_the_middle_of_a_commit_is_found_by_its_farewell() -> None:
    played = Played(ONE, CLOSE, other := Order("web-5", "7"), first := Order("web-6", "7"))
    assert played.commit(first).commit(ONE, CLOSE, other).findings() == set()


def test_a_message_that_took_place_twice_is_found() -> None:
    assert ("at_most_one_state_change", "7") in Played(ONE).commit(ONE).commit(ONE).findings()


def test_a_message_that_took_place_again_after_a_deletion_is_found() -> None:
    played = Played(ONE, CLOSE).commit(ONE).commit(CLOSE).commit(ONE)
    assert ("at_most_one_state_change", "7") in played.findings()


def test_a_lost_update_is_found() -> None:
    played = Played(ONE, other := Order("web-5", "7")).commit(ONE)
    played.state = NOTHING  # The second one does not know of the first.
    assert ("consistent_state", "7") in played.commit(other).findings()


def test_two_messages_with_one_number_are_found() -> None:
    played = Played(ONE)
    for name in ("web-9.0", "web-9.1"):
        sent = {"channel": "c1", "sequence": "1", "partitionkey": "tally/7", "data": {"name": name}}
        played.history.published(json.dumps(sent))
    assert "in_sequence" in {violation.property for violation in played.history.violations}


def test_what_somebody_waited_for_in_vain_may_have_taken_place_or_not() -> None:
    asked = Order("web-7", "7", asked=True)
    assert Played(asked).findings() == set()
    assert Played(asked).commit(asked, publish=False).findings() == {("nothing_lost", "7")}
    assert Played(asked).commit(asked, publish=False).publish(execute(NOTHING, asked)[1]).findings() == set()


def test_what_is_kept_for_a_while_may_be_published_after_its_message_was_acknowledged() -> None:
    played = Played(keeps := Order("web-7", "7", relays=("8",), kept=True))
    outputs = execute(NOTHING, keeps)[1]
    played.commit(keeps, publish=False).publish(outputs[:1]).acknowledge(keeps)
    assert played.findings() == {("nothing_lost", "7")}
    relayed = played.publish(outputs[1:]).history.orders["web-7.1"]
    assert played.history.violations == []
    assert (relayed.tally, relayed.kept) == ("8", False)


def test_what_is_undone_has_to_take_place_again_and_may_send_something_else() -> None:
    played = Played(ONE, other := Order("web-5", "7")).commit(ONE)
    assert played.history.put_back("7", 1) == [ONE.name]
    played.state = NOTHING
    played.commit(other)
    assert {("nothing_lost", "7"), ("termination", "7")} <= played.findings()
    assert played.commit(ONE).findings() == set()


def test_what_was_not_undone_must_not_take_place_again() -> None:
    played = Played(ONE, other := Order("web-5", "7")).commit(ONE)
    seen = played.history.written_so_far
    played.commit(other)
    assert played.history.put_back("7", seen["7"]) == [other.name]
    played.state = execute(NOTHING, ONE)[0]
    assert ("at_most_one_state_change", "7") in played.commit(ONE, other).findings()


def test_a_message_that_never_took_place_is_found() -> None:
    assert Played(ONE).findings() == {("nothing_lost", "7"), ("termination", "7")}


def test_acknowledging_before_publishing_is_found_though_it_is_published_later() -> None:
    played = Played(ONE).commit(ONE, publish=False).acknowledge(ONE).publish(execute(NOTHING, ONE)[1])
    assert played.findings() == {("nothing_lost", "7")}


def test_an_output_that_is_never_published_is_found() -> None:
    played = Played(ONE).commit(ONE, publish=False)
    assert played.findings() == {("nothing_lost", "7"), ("termination", "7")}


def test_an_output_of_an_attempt_that_was_not_committed_is_found() -> None:
    played = Played(ONE).publish(execute(NOTHING, ONE)[1])
    assert ("no_ghost_output", "7") in played.findings()


def test_an_output_that_fits_another_state_is_found() -> None:
    played = Played(ONE).commit(ONE, publish=False).publish(execute(Tally(3, "other"), ONE)[1]).acknowledge(ONE)
    assert played.findings() == {("consistent_state_and_output", "7")}


def test_copies_that_differ_are_found() -> None:
    played = Played(ONE).commit(ONE).publish(execute(Tally(3, "other"), ONE)[1])
    assert played.findings() == {("at_most_one_output", "7")}


def test_copies_that_do_not_differ_are_none_of_its_business() -> None:
    assert Played(ONE).commit(ONE).publish(execute(NOTHING, ONE)[1]).findings() == set()


def test_an_output_of_nobody_is_found() -> None:
    assert Played().publish([{"name": "web-9.0"}]).findings() == {("no_ghost_output", "")}


def test_a_refused_message_has_to_be_parked_and_to_leave_no_trace() -> None:
    played = Played(REFUSED)
    assert played.findings() == {("termination", "7")}
    played.history.park(REFUSED.name)
    assert played.findings() == set()
    played.publish([{"name": "web-4.0"}])
    assert played.findings() == {("no_ghost_output", "7")}


def test_a_look_may_report_any_one_state_that_there_was() -> None:
    for seen in (NOTHING, execute(NOTHING, ONE)[0]):
        played = Played(ONE, LOOK).commit(ONE).publish(execute(seen, LOOK)[1])
        played.acknowledge(LOOK)
        assert played.findings() == set()


def test_a_look_that_reports_a_state_that_never_was_or_two_states_is_found() -> None:
    before, after = (execute(seen, LOOK)[1] for seen in (NOTHING, execute(NOTHING, ONE)[0]))
    for outputs in (execute(Tally(3, "other"), LOOK)[1], [before[0], after[1]]):
        played = Played(ONE, LOOK).commit(ONE).publish(outputs)
        played.acknowledge(LOOK)
        assert played.findings() == {("consistent_state_and_output", "7")}


def test_a_look_that_reports_less_than_it_should_is_found() -> None:
    played = Played(LOOK).publish(execute(NOTHING, LOOK)[1][:1])
    assert ("nothing_lost", "7") in played.acknowledge(LOOK).findings()


def test_a_story_has_the_events_of_the_entity_only() -> None:
    played = Played(ONE, Order("web-5", "9")).commit(ONE, publish=False)
    story = "\n".join(played.history.story(judge.judge(played.history)[0]))
    assert "web-1" in story
    assert "web-5" not in story


def test_only_what_is_not_the_library_s_own_is_looked_at() -> None:
    played = Played(ONE).commit(ONE)
    assert played.history.written("7", json.dumps({**json.loads(document(played.state)), "_ledger": 1})) == (
        "entity saved unchanged",
    )


def test_what_takes_place_after_its_only_copy_was_parked_is_found() -> None:
    played = Played(ONE)
    played.history.copies.appear(ONE.name)
    played.history.park(ONE.name, played.history.copies.only(ONE.name))
    played.history.copies.end(ONE.name)
    assert played.commit(ONE).findings() == {("parked_is_unprocessed", "7")}


def test_what_was_parked_may_take_place_by_another_copy() -> None:
    for before in (True, False):
        played = Played(ONE)
        played.history.copies.appear(ONE.name)
        if before:
            played.history.copies.appear(ONE.name)
        played.history.park(ONE.name, played.history.copies.only(ONE.name))
        played.history.copies.end(ONE.name)
        if not before:
            played.history.copies.appear(ONE.name)
        assert played.commit(ONE).findings() == set()


def test_what_is_parked_as_unprocessed_after_it_took_place_is_found() -> None:
    played = Played(ONE).commit(ONE)
    played.history.copies.appear(ONE.name)
    played.history.park(ONE.name, played.history.copies.only(ONE.name))
    assert played.findings() == {("parked_is_unprocessed", "7")}


def test_what_is_put_aside_may_have_taken_place() -> None:
    played = Played(ONE).commit(ONE)
    played.history.park(ONE.name, None)
    assert played.findings() == set()


def test_an_output_that_is_kept_since_it_is_too_old_pays_but_has_to_be_sent_in_the_end() -> None:
    played = Played(ONE).commit(ONE, publish=False)
    played.history.keep(ONE.outputs[0])
    played.acknowledge(ONE)
    assert played.history.violations == []
    assert played.findings() == {("nothing_lost", "7")}
    assert played.publish(execute(NOTHING, ONE)[1]).findings() == set()


@pytest.mark.parametrize("module", [history, judge])
def test_the_judge_imports_nothing_of_the_library(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert not [name for name in imported if name.startswith("exactlyonce")]
    inside = {name for name in imported if name.startswith("verification")}
    assert inside <= {f"verification.simulation.{name}" for name in ("history", "judge")}
