"""Messages of several sources in one order, by their time and source."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Envelope, Resequencer
from exactlyonce.errors import InvalidMessage
from exactlyonce.records.companions import NumberedMessage
from tests.unit.boards import RESEQUENCER, Readers, scored
from tests.unit.script import AT

WAIT = timedelta(minutes=1)
IN_TIME = Resequencer(order="time", max_wait=WAIT)


def sent(source: str, number: int, second: int, shown: int | None = None) -> Envelope:
    """The number-th message of a source, sent at that second; the board is shown `shown`."""
    envelope = scored(second if shown is None else shown, source, id=f"m-{number}", key="b")
    extensions = tuple((name, f"{number:016d}" if name == "sequence" else value) for name, value in envelope.extensions)
    return replace(envelope, time=AT + timedelta(seconds=second), extensions=extensions)


def late(readers: Readers) -> list[str]:
    """The messages that were handled too late."""
    numbered = (companion for companion in readers.companions if isinstance(companion, NumberedMessage))
    return sorted(f"{item.source}{item.number}" for item in numbered if item.late)


def acquainted() -> Readers:
    """A read model that knows the sources a and b, which have both passed second 1."""
    readers = Readers(strategy=IN_TIME)
    readers.delivered(sent("a", 1, 1), sent("b", 1, 1))
    readers.at = AT + WAIT
    readers.delivered()
    assert readers.seen == ["1", "1"]
    return readers


def test_a_message_waits_until_every_source_has_passed_its_time() -> None:
    readers = acquainted()
    readers.delivered(sent("a", 2, 5))
    assert readers.seen == ["1", "1"]
    readers.delivered(sent("b", 2, 4))
    assert readers.seen == ["1", "1", "4"], "b may still send something for second 5"
    readers.delivered(sent("b", 3, 7))
    assert readers.seen == ["1", "1", "4", "5"]
    assert late(readers) == []


def test_what_others_send_meanwhile_makes_it_wait_no_longer() -> None:
    readers = acquainted()
    readers.delivered(sent("c", 1, 60))
    for turn in range(2, 6):  # The clock of a is behind, and b is silent.
        readers.at += WAIT / 4
        readers.delivered(sent("a", turn, turn, shown=turn))
    assert readers.seen == ["1", "1", "2", "3", "4", "5", "60"]
    assert late(readers) == []


def test_a_late_message_is_handled_and_recorded() -> None:
    readers = acquainted()
    readers.delivered(sent("a", 2, 9))
    readers.at += WAIT
    readers.delivered(sent("a", 3, 20))
    readers.at += WAIT
    readers.delivered(sent("b", 2, 4))
    assert readers.seen == ["1", "1", "9", "4", "20"]
    assert late(readers) == ["b2"]


def test_a_message_without_a_time_is_refused() -> None:
    finished = Readers(strategy=IN_TIME).delivered(replace(sent("a", 1, 1), time=None))
    ((key, error),) = finished.failed
    assert (key, type(error), "has no time" in str(error)) == ("a/m-1", InvalidMessage, True)


def test_one_that_was_held_before_there_was_an_order_by_time_needs_none() -> None:
    readers = Readers()
    readers.delivered(replace(sent("a", 2, 0, shown=2), time=None), sent("b", 2, 4))
    readers.strategy = IN_TIME
    readers.delivered(sent("a", 1, 3), sent("b", 1, 1))
    assert readers.seen == ["1", "3", "2"], "a may still send something for second 3"
    readers.at += WAIT
    readers.delivered()
    assert readers.seen == ["1", "3", "2", "4"]
    assert late(readers) == []


def test_without_an_order_by_time_nothing_is_late_and_no_time_is_kept() -> None:
    readers = acquainted()
    readers.strategy = RESEQUENCER
    readers.delivered(sent("a", 2, 0, shown=2))
    assert (readers.seen, late(readers)) == (["1", "1", "2"], [])
    assert readers.reception("a").passed is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=12), st.randoms(use_true_random=False))
def test_in_whatever_order_they_arrive_they_are_handled_in_one(steps: list[tuple[str, int]], random: Random) -> None:
    readers = Readers(strategy=IN_TIME)
    readers.delivered(*(sent(source, 1, 1, shown=0) for source in "abc"))  # Who is not known is not waited for.
    readers.at += WAIT
    readers.delivered()
    seconds, numbers = dict.fromkeys("abc", 10), dict.fromkeys("abc", 1)
    messages: list[Envelope] = []
    for source, more in steps:
        seconds[source] += more
        numbers[source] += 1
        messages.append(sent(source, numbers[source], seconds[source], shown=len(messages) + 1))
    in_order = sorted(messages, key=lambda item: (seconds_of(item), item.source, item.extensions))
    random.shuffle(messages)
    for message in messages:
        readers.delivered(message)
    readers.at += WAIT
    readers.delivered()
    assert readers.seen is not None
    assert readers.seen[3:] == [str(item.data.value["number"]) for item in in_order]
    assert late(readers) == []


def seconds_of(envelope: Envelope) -> float:
    """When it was sent."""
    assert envelope.time is not None
    return envelope.time.timestamp()


def test_more_sources_than_a_batch_has_room_for_are_brought_into_one_order() -> None:
    readers = Readers(strategy=IN_TIME)
    sources = [f"s{number:03}" for number in range(105)]
    for number in (2, 1):  # All are known before the first of them can be handled.
        for begin in range(0, len(sources), RESEQUENCER.group_limit):
            group = enumerate(sources[begin : begin + RESEQUENCER.group_limit], begin)
            readers.delivered(*(sent(source, number, 100 * number + place * 7 % 100) for place, source in group))
    assert readers.seen is not None
    seconds = [int(second) for second in readers.seen[:105]]
    assert seconds == sorted(100 + place * 7 % 100 for place in range(105))
    assert late(readers) == []


def test_however_many_have_waited_long_enough_a_batch_takes_no_more_than_the_service_does() -> None:
    readers = Readers(strategy=IN_TIME)
    sources = [f"s{number:03}" for number in range(105)]
    for number, from_whom in ((2, sources), (1, sources[1:])):  # One is silent, so that all the others wait.
        for begin in range(0, len(from_whom), RESEQUENCER.group_limit):
            readers.delivered(
                *(sent(item, number, number) for item in from_whom[begin : begin + RESEQUENCER.group_limit])
            )
    assert readers.seen is None or readers.seen == []
    readers.at += WAIT
    readers.delivered()
    assert readers.seen is not None
    assert len(readers.seen) >= 104
