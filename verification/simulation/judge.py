"""The judge: whether what was seen is some serial execution of the accepted messages, each exactly once.

It imports nothing of the library. From the accepted writes and the last words of deleted tallies it finds the order in which
the messages took place; then it executes them anew, and compares states and outputs. What boards promise besides is judged in
`sequences`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from verification.simulation.history import NOTHING, History, Order, Spot, Tally, Violation, execute

Life = tuple[str, ...]
"""Names of the messages that took place, in order, from an empty tally to its deletion, or to the end."""


def spot_of(order: Order) -> Spot | None:
    """Where a message stands at its board; None if it is for no board."""
    return None if order.place is None else (order.tally, order.place.source, order.place.number)


def judge_numbering(history: History, tally: str, lives: Sequence[Life]) -> Iterator[Violation]:
    """Whether what a tally shows to each board has the numbers 1, 2, 3 … in the order in which it took place."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for life in lives:
        within: dict[str, list[int]] = defaultdict(list)
        shown = (
            history.orders[output]
            for name in life
            for output in history.orders[name].outputs
            if output in history.orders
        )
        for order in shown:
            if order.place is not None:
                within[order.tally].append(order.place.number)
        for board, given in within.items():
            if given != list(range(given[0], given[0] + len(given))):
                yield Violation("in_sequence", tally, f"what it shows to {board} is numbered {_ranges(given)}")
            numbers[board] += given
    for board, given in numbers.items():
        if sorted(given) != list(range(1, len(given) + 1)):
            yield Violation("in_sequence", tally, f"what it shows to {board} has not the numbers 1 to {len(given)}")


def judge_board(history: History, board: str, lives: Sequence[Life]) -> Iterator[Violation]:
    """Whether a board heard each source in its order, and all of them in one order where that was promised."""
    for life in lives:
        yield from _judge_life(history, board, life)
    if history.promises.one_order:
        yield from _judge_one_order(history, board, [name for life in lives for name in life])


def judge_skipped(history: History) -> Iterator[Violation]:
    """Whether what boards gave up was theirs to give up."""
    sent = {spot_of(order): order for order in history.orders.values()}
    for spot in sorted(history.skipped):
        board, source, number = spot
        if history.promises.complete:
            yield Violation("nothing_lost", board, f"number {number} of {source} was given up, which was not asked for")
        if spot not in sent:
            yield Violation("in_sequence", board, f"number {number} of {source} was given up, but never sent")
        elif sent[spot].name in history.acknowledged and spot not in history.noted:
            yield Violation("reported", board, f"{sent[spot].name} came after it was given up, which is not reported")


def _judge_life(history: History, board: str, life: Life) -> Iterator[Violation]:
    heard: dict[str, list[int]] = defaultdict(list)
    for name in life:
        place = history.orders[name].place
        if place is None:
            yield Violation("in_sequence", board, f"{name} took place, but has no number")
        else:
            heard[place.source].append(place.number)
    for source, numbers in heard.items():
        expected = (number for number in range(numbers[0], numbers[-1] + 1))
        if numbers != [number for number in expected if (board, source, number) not in history.skipped]:
            yield Violation("in_sequence", board, f"the numbers of {source} took place as {_ranges(numbers)}")


def _judge_one_order(history: History, board: str, names: Sequence[str]) -> Iterator[Violation]:
    latest = None
    for name in names:
        order = history.orders[name]
        if order.place is None:
            continue  # It was convicted of that.
        at = (order.place.time, order.place.source)
        late = latest is not None and at < latest
        if late != (spot_of(order) in history.late):
            yield Violation("one_order", board, f"whether {name} came too late is reported wrongly")
        latest = at if latest is None else max(latest, at)


def _ranges(numbers: Sequence[int]) -> str:
    wrong = next((at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1), len(numbers))
    return " ".join(str(number) for number in numbers[max(0, wrong - 2) : wrong + 3])


def judge(history: History) -> list[Violation]:
    """Everything that does not add up once the queues are empty."""
    farewells = _farewells(history)
    by_tally: dict[str, list[Order]] = defaultdict(list)
    for order in history.orders.values():
        by_tally[order.tally].append(order)
    found = list(history.violations)
    for tally in dict.fromkeys((*by_tally, *history.writes)):
        found.extend(_judge_tally(history, tally, by_tally.get(tally, ()), farewells.get(tally, {})))
    found.extend(judge_skipped(history))
    return found


def _judge_tally(
    history: History, tally: str, orders: Sequence[Order], farewells: Mapping[str, Tally]
) -> Iterator[Violation]:
    lives, wrong = _lives(history.orders, history.writes.get(tally, [NOTHING]), farewells)
    if wrong is not None:
        yield Violation("consistent_state", tally, wrong)
        return  # Without an order there is nothing to compare with.
    took_place = Counter(name for life in lives for name in life)
    for name, times in took_place.items():
        if times > 1:
            yield Violation("at_most_one_state_change", tally, f"{name} took place {times} times")
        if name not in history.orders or history.orders[name].tally != tally:
            yield Violation("no_ghost_change", tally, f"{name} was never sent to it")
    for order in orders:
        yield from _judge_order(history, order, took_place[order.name])
    states = [NOTHING]
    for life in lives:
        yield from _judge_outputs(history, tally, life, states)
    for order in orders:
        if order.looks:
            yield from _judge_look(history, order, states)
    yield from judge_numbering(history, tally, lives)
    if any(order.place is not None for order in orders):
        yield from judge_board(history, tally, lives)


def _judge_order(history: History, order: Order, times: int) -> Iterator[Violation]:
    if (order.refused or not (times or order.looks)) and (
        ghosts := [name for name in order.outputs if name in history.sent]
    ):
        yield Violation("no_ghost_output", order.tally, f"{ghosts[0]} was published, but {order.name} has no effect")
    if order.refused:
        if times:
            yield Violation("no_ghost_change", order.tally, f"{order.name} was refused, and took place")
        if order.name in history.acknowledged:
            yield Violation("nothing_lost", order.tally, f"{order.name} was refused, and acknowledged")
        if order.name not in history.parked:
            yield Violation("termination", order.tally, f"{order.name} was never parked")
        return
    if spot_of(order) in history.skipped:
        if times:
            yield Violation("no_ghost_change", order.tally, f"{order.name} took place, and was given up")
        return
    if not order.asked:  # Whoever asked was told, or knows that nobody knows.
        yield from _judge_end(history, order, times)


def _judge_end(history: History, order: Order, times: int) -> Iterator[Violation]:
    if not times and not order.looks:
        yield Violation("nothing_lost", order.tally, f"{order.name} never took place")
    if order.name not in history.acknowledged:
        yield Violation("termination", order.tally, f"{order.name} was never acknowledged")


def _judge_outputs(history: History, tally: str, life: Life, states: list[Tally]) -> Iterator[Violation]:
    """Whether what a life sent fits it; its states are added to those given."""
    state = NOTHING
    for name in life:
        order = history.orders[name]
        state, outputs = execute(state, order, order.remembered)
        states.append(state)
        for data in outputs:
            sent = history.sent.get(data["name"])
            if sent is None:
                yield Violation("nothing_lost", tally, f"{data['name']} was never published")
            elif all(any(item.data.get(key) != value for key, value in data.items()) for item in sent):
                yield Violation(
                    "consistent_state_and_output", tally, f"{data['name']} does not fit the state {name} took place on"
                )


def _judge_look(history: History, order: Order, states: Iterable[Tally]) -> Iterator[Violation]:
    sent = {name: history.sent[name][0].data for name in order.outputs if name in history.sent}
    if lost := [name for name in order.outputs if name not in sent]:
        yield Violation("nothing_lost", order.tally, f"{lost[0]} was never published")
    elif all(list(sent.values()) != execute(state, order)[1] for state in states):
        yield Violation(
            "consistent_state_and_output", order.tally, f"what {order.name} reported fits no state it could see"
        )


def _farewells(history: History) -> dict[str, dict[str, Tally]]:
    farewells: dict[str, dict[str, Tally]] = defaultdict(dict)
    for name, (sent, *_) in history.sent.items():
        cause = history.orders.get(name.rpartition(".")[0])
        if cause is not None and sent.data.get("closed"):
            before = Tally(sent.data["count"], sent.data["before"], tuple(sent.data["closed"]))
            farewells[cause.tally].setdefault(cause.name, before)
    return farewells


def _lives(
    orders: Mapping[str, Order], writes: Sequence[Tally], farewells: Mapping[str, Tally]
) -> tuple[list[Life], str | None]:
    """The order in which messages took place, by life of the tally; or why no order leads to what was written."""
    lives: list[Life] = []
    life: Life = ()
    state = NOTHING
    left = dict(farewells)
    for written in writes:
        while (names := _between(orders, state, written)) is None:
            last = next((name for name, before in left.items() if _between(orders, state, before) is not None), None)
            if last is None:
                return lives, f"no messages lead from {_described(state)} to {_described(written)}"
            lives.append((*life, *(_between(orders, state, left.pop(last)) or ()), last))
            life, state = (), NOTHING
        life, state = (*life, *names), written
    for last, before in left.items():  # Lives that began and ended within one commit left no state behind.
        names = _between(orders, NOTHING, before)
        if names is None:
            return lives, f"{last} deleted {_described(before)}, which was never saved"
        lives.append((*names, last))
    return [*lives, life], None


def _between(orders: Mapping[str, Order], earlier: Tally, later: Tally) -> Life | None:
    """The messages that lead from one state to another without a deletion; None if no messages do."""
    added = later.count - earlier.count
    if not 0 <= added <= len(later.recent):
        return None
    names = later.recent[len(later.recent) - added :]
    state = earlier
    for name in names:
        if name not in orders:
            return None
        state, _ = execute(state, orders[name], orders[name].remembered)
    return names if state == later else None


def _described(state: Tally) -> str:
    return f"count {state.count} after {state.recent[-1]}" if state.recent else "an empty state"
