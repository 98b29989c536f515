"""Damage, and what has to be found of it: rule, message, versions and subject of each finding."""

from __future__ import annotations

from exactlyonce.values.envelope import EntityRef
from tests.spark.transforms import outbox_cases, reader_cases, record_cases
from tests.spark.transforms.planting import DAY, MINUTE, Cases, ref, seconds

EXPECTED: Cases = {**outbox_cases.EXPECTED, **record_cases.EXPECTED, **reader_cases.EXPECTED}
CASES = {case: plant for case, (plant, _) in EXPECTED.items()}


def _shop(case: str) -> EntityRef:
    return ref("shop", case)


SEEN_BEFORE = [
    (_shop("removed since the last audit").key, 17, seconds(20 * DAY)),
    (_shop("removed since the last audit").key, 9, seconds(30 * DAY)),
    (_shop("removed since the last audit").key, 25, seconds(3 * DAY)),
    (_shop("gone since an audit").key, 3, seconds(3 * DAY)),
    (_shop("fallen behind an audit").key, 3, seconds(3 * DAY)),
    (_shop("an outbox").key, 7, seconds(MINUTE)),
    (_shop("an outbox").key, 2, seconds(3 * DAY)),
    (_shop("all removed").key, 2, seconds(3 * DAY)),
    (_shop("perhaps removed").key, 17, seconds(20 * DAY)),
]
"""What earlier audits saw; the second so long ago that it proves nothing, the third less than the first, and one of a
moment ago: what it saw, this look may not see yet."""
