"""Damage, and what has to be found of it: rule, message, versions and subject of each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from exactlyonce.stores.cosmos.layout import processed_id
from exactlyonce.values.identity import EntityRef, message_key
from tests.spark.transforms import corner_cases, number_cases
from tests.spark.transforms import damaged_cases as damaged
from tests.spark.transforms.damaged_cases import NOBODY, SOMEBODY, Plant
from tests.spark.transforms.planting import (
    DAY,
    MINUTE,
    channel_of,
    colocated,
    on_the_wire,
    outbox,
    reader,
    ref,
    seconds,
    sent,
    stream,
)

Named = tuple[str, str | None, tuple[int, ...], str | None]
"""Rule, message, versions and subject of a finding."""


def held(first: int, last: int) -> str:
    return f"{channel_of(NOBODY)} {first}-{last}"


def _shop(case: str) -> EntityRef:
    return ref("shop", case)


def _wire(case: str, message: str, index: int = 0) -> str:
    return on_the_wire(_shop(case), sent(_shop(case), message, index))


EXPECTED: Mapping[str, tuple[Plant, Callable[[str], set[Named]]]] = {
    "applied twice": (
        damaged.applied_twice,
        lambda _: {("at_most_one_state_change", "web/m-2", (2, 6), None)},
    ),
    "applied twice in a stream": (
        damaged.applied_twice_in_a_stream,
        lambda _: {("at_most_one_state_change", "web/m-2", (2, 4), None)},
    ),
    "two changes": (damaged.two_changes, lambda _: {("two_owners", "web/m-0", (5,), None)}),
    "two transactions": (
        damaged.two_transactions,
        lambda _: {("two_owners", "web/m-5", (5,), None), ("at_most_one_state_change", "web/m-5", (5,), None)},
    ),
    "hole among records": (damaged.hole_among_records, lambda _: {("ledger_hole", None, (2, 3), None)}),
    "hole in the ledger": (damaged.hole_in_the_ledger, lambda _: {("ledger_hole", None, (8,), None)}),
    "newest entry gone": (damaged.newest_entry_gone, lambda _: {("ledger_hole", None, (6,), None)}),
    "newest entry gone above what is old": (
        damaged.newest_entry_gone_above_what_is_old,
        lambda _: {("ledger_hole", None, (6,), None)},
    ),
    "nothing is recorded": (damaged.nothing_is_recorded, lambda _: {("ledger_hole", None, (1, 2, 3, 4, 5, 6), None)}),
    "hole in companions": (damaged.hole_in_companions, lambda _: {("ledger_hole", None, (3,), None)}),
    "hole at the top of a stream": (damaged.hole_at_the_top_of_a_stream, lambda _: {("ledger_hole", None, (4,), None)}),
    "number passed over": (damaged.number_passed_over, lambda _: {("ledger_hole", None, (), held(2, 3))}),
    "removed since the last audit": (
        damaged.removed_since_the_last_audit,
        lambda _: {("dedup_expired_early", None, tuple(range(18, 39)), None)},
    ),
    "removed though seen": (
        damaged.removed_though_seen,
        lambda case: {
            ("dedup_expired_early", _wire(case, "web/m-2"), (), ref("mailer", f"{case}:mailer").key),
        },
    ),
    **{
        f"document gone, {make.__name__}": (damaged.document_gone(make), lambda _: {("document_lost", None, (), None)})
        for make in (outbox, colocated, stream, reader)
    },
    "gone since an audit": (damaged.gone_since_an_audit, lambda _: {("document_lost", None, (), None)}),
    "made anew": (damaged.made_anew, lambda _: {("document_lost", None, (), None)}),
    "fallen behind an audit": (damaged.fallen_behind_an_audit, lambda _: {("document_lost", None, (), None)}),
    "without its ledger": (damaged.without_its_ledger, lambda _: {("document_lost", None, (), None)}),
    "number above the next": (
        damaged.number_above_the_next,
        lambda _: {("document_lost", None, (), channel_of(source)) for source in (NOBODY, SOMEBODY)},
    ),
    "recorded in two ways": (
        damaged.recorded_in_two_ways,
        lambda _: {("consistent_state_and_output", "web/m-5", (5,), "tx-5")},
    ),
    "one id twice": (
        damaged.one_id_twice,
        lambda case: {
            ("consistent_state_and_output", "web/m-2", (2, 3), sent(_shop(case), "web/m-2").id),
            ("consistent_state_and_output", "web/m-4", (4,), None),
        },
    ),
    "one number twice": (
        damaged.one_number_twice,
        lambda case: {("consistent_state_and_output", None, (5, 6), f"{channel_of(_shop(case).source)} 1")},
    ),
    "ghost": (
        damaged.ghost,
        lambda case: {
            ("consistent_state_and_output", _wire(case, "web/ghost-1"), (), ref("mailer", f"{case}:mailer").key),
            ("consistent_state_and_output", _wire(case, "web/ghost-2"), (), ref("reader", f"{case}:reader").key),
        },
    ),
    "owing": (
        damaged.owing,
        lambda _: {("output_owed", "web/m-5", (5,), "tx-5"), ("staged_missing", "web/m-5", (5,), "tx-5")},
    ),
    "kept too long": (
        damaged.kept_too_long,
        lambda _: {("output_owed", None, (), "o-1"), ("staged_missing", None, (), "o-2")},
    ),
    "owing in companions": (damaged.owing_in_companions, lambda _: {("output_owed", "web/m-4", (4,), "tx-4")}),
    "lost": (
        damaged.lost,
        lambda case: {("output_lost", "web/m-5", (5,), _wire(case, "web/m-5", index)) for index in (0, 1)},
    ),
    "orphan": (damaged.orphan, lambda _: {("orphan_staged", "web/m-7", (), "tx-7")}),
    "requests left": (
        damaged.requests_left,
        lambda _: {("request_left", None, (), f"request:left-{what}") for what in ("open", "answered")},
    ),
    "waiting": (damaged.waiting, lambda _: {("sequence_gap", None, (), f"{channel_of(NOBODY)} 5")}),
    "skipped": (damaged.skipped, lambda _: {("sequence_gap", None, (), held(2, 3))}),
    "two with one number": (
        damaged.two_with_one_number,
        lambda _: {("sequence_gap", message_key(NOBODY, "n-2"), (), f"{channel_of(NOBODY)} 2")},
    ),
    "stuck": (damaged.stuck, lambda _: {("stuck_reader", message_key(NOBODY, "n-5"), (), f"{channel_of(NOBODY)} 5")}),
    "held and gone": (damaged.held_and_gone, lambda _: {("stuck_reader", None, (), f"{channel_of(NOBODY)} 7")}),
    "answered in two ways": (
        damaged.answered_in_two_ways,
        lambda _: {("one_answer", f"web/m-{number}", (number,), None) for number in (5, 6)},
    ),
    "never answered": (
        damaged.never_answered,
        lambda case: {
            ("reply_awaited", None, (), sent(_shop(case), "web/m-5").id),
            ("reply_awaited", None, (), NOBODY),
        },
    ),
    "newer": (damaged.newer, lambda _: {("unreadable", "web/m-2", (), f"library/{processed_id('web/m-2')}")}),
    "damaged": (
        damaged.damaged,
        lambda case: {("unreadable", "web/m-9", (), f"library/{case}:{number}") for number in (1, 2)},
    ),
    **corner_cases.EXPECTED,
    **number_cases.EXPECTED,
}
CASES: Mapping[str, Plant] = {case: plant for case, (plant, _) in EXPECTED.items()}
SEEN_BEFORE = [
    (_shop("removed since the last audit").key, 17, seconds(20 * DAY)),
    (_shop("removed since the last audit").key, 9, seconds(30 * DAY)),
    (_shop("removed since the last audit").key, 25, seconds(3 * DAY)),
    (_shop("gone since an audit").key, 3, seconds(3 * DAY)),
    (_shop("fallen behind an audit").key, 3, seconds(3 * DAY)),
    (_shop("an outbox").key, 7, seconds(MINUTE)),
    (_shop("an outbox").key, 2, seconds(3 * DAY)),
    *corner_cases.SEEN_BEFORE,
]
"""What earlier audits saw; the second so long ago that it proves nothing, the third less than the first, and one of a
moment ago: what it saw, this look may not see yet."""
