"""The judge of boards: whether each heard every source in its order, without a gap that it does not report.

It imports nothing of the library.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from verification.simulation.history import History, Spot, Violation
from verification.simulation.model import Order

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
    """Numbers as one reads them, from before the first step that is not to the next number."""
    wrong = next((at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1), len(numbers))
    return " ".join(str(number) for number in numbers[max(0, wrong - 2) : wrong + 3])
