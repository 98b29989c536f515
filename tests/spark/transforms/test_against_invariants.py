"""`exactlyonce.testing.guarantee` and the rules are two forms of one judgement: of random histories they find the same.

Compared is what documents at rest tell of, and what is kept whole: nothing was cleaned up. Messages are named by their hashes.

- `at_most_one_state_change`: entity and message.
- `versions_are_distinct`, and `two_owners`: entity and version.
- `no_ghost_output` of what records and numbers name of entities whose history has no hole, and `output_unknown`: the output.
- `consistent_state_and_output`, where two records of a commit are kept, one has another digest, and all outputs were published:
  message. Of what is still owed, only the rule can say.
- `in_sequence`, and `ledger_hole` and `sequence_gap` of read models: entity, channel and number, of numbers up to the highest
  that was taken. Above it `ledger_hole` finds more, since it knows what the read model is to take next.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exactlyonce.protocols.outbox import draft
from exactlyonce.records.companions import KIND, ColocatedRecord, NumberedMessage, StreamEntry
from exactlyonce.records.ledger import Ledger, Mark, read_entity, split
from exactlyonce.records.outbox import Output
from exactlyonce.stores.cosmos.partition import without_system
from exactlyonce.testing import guarantee as invariants
from exactlyonce.testing.guarantee import Commit
from exactlyonce.values.envelope import EntityRef, message_hash
from exactlyonce.values.frozen_json import Json, read_shape
from spark_jobs.transforms.facts import Thresholds, facts_in
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.conftest import Finding, Kept, judged
from tests.spark.transforms.damaging import DAMAGES
from tests.spark.transforms.dumping import Stored, moved, rows, stored_in
from tests.spark.transforms.pipelines import READERS, SENDERS, Pipeline
from tests.spark.transforms.planting import NOW, seconds

MANY = 100
"""Histories of the one example: Spark takes as long for all of them as for one."""
SHORT = (timedelta(0), timedelta(minutes=7))
SHAPES: dict[str, type[Any]] = {"processed": ColocatedRecord, "entry": StreamEntry, "numbered": NumberedMessage}
Judgement = dict[str, set[tuple[Any, ...]]]
"""By what is compared, what was found: the name of the history first."""


@dataclass(frozen=True)
class History:
    """One history at rest.

    Attributes:
        name: unlike any other's.
        stored: its documents.
        published: what its entities sent.
        rows: of the documents, as of the one time at which all histories are judged, and with the name in all names.
    """

    name: str
    stored: list[Stored]
    published: tuple[Output, ...]
    rows: list[tuple[str, str]]


async def history(name: str, drawn: tuple[str, str, int, list[str]]) -> History:
    senders, reader, seed, damages = drawn
    pipeline = Pipeline(seed, name, senders, reader, SHORT)
    await pipeline.run(5)
    stored = list(stored_in(pipeline.world.store, pipeline.paths))
    random = Random(seed)
    for damage in damages:
        DAMAGES[damage](stored, random)
    return History(name, stored, pipeline.world.published, list(moved(rows(stored), NOW - pipeline.clock.now())))


def told(stored: list[Stored]) -> Iterator[Commit]:
    """What documents tell of commits, as the library reads them."""
    for item in stored:
        own = {name: value for name, value in without_system(item.document).items() if f"/{name}" not in item.paths}
        if KIND in own:
            kind = own.pop(KIND)
            del own["id"]  # Damage may have given it one that is not its own.
            companion: Any = read_shape(SHAPES[kind], {**own, "kind": kind}, "A companion")
            if not (isinstance(companion, NumberedMessage) and companion.held is not None):
                yield Commit.of(companion.entity, companion)
        elif item.place != LIBRARY:
            partition = tuple(item.document[path[1:]] for path in item.paths)
            ref = EntityRef(item.place, partition, own["id"])
            ledger = read_entity(ref, Json.of(without_system(item.document))).ledger or Ledger()
            marks = enumerate(map(Mark.read, split(ledger.marks)), ledger.left + 1)
            yield from (Commit.of_mark(ref, mark, version) for version, mark in marks)


def sightings(stored: list[Stored]) -> tuple[Output, ...]:
    """What boards saw of players, as far as they keep keys: held messages as well."""
    found = [item.document["message"] for item in stored if item.document.get(KIND) and item.document["message"]]
    seen = {message.split("/")[1] for message in found if message.startswith("player_")}
    return tuple(Output(id, "", Json("{}")) for id in seen)


def by_invariants(history: History) -> Judgement:
    commits = tuple(told(history.stored))
    name = history.name
    listed = [commit for commit in commits if commit.version is not None]
    facts = invariants.Facts(commits, history.published)
    ghosts = invariants.no_ghost_output(invariants.Facts(tuple(listed), sightings(history.stored)))
    sequence = invariants.in_sequence(facts)
    numbers = (re.match(r"number (\d+) of (\S+) was taken", item.detail) for item in sequence)
    return {
        "once": {(name, item.entity, item.message) for item in invariants.at_most_one_state_change(commits)},
        "owners": {
            (name, item.entity, int(item.detail.split()[1])) for item in invariants.versions_are_distinct(commits)
        },
        "ghosts": {(name, ghost.detail.split()[1]) for ghost in ghosts},
        "digests": {(name, item.entity, item.message) for item in invariants.consistent_state_and_output(facts)},
        "numbers": {(name, found[2], int(found[1])) for found in numbers if found},
    }


def by_rules(histories: list[History], found: list[Finding]) -> Judgement:
    highest = {item.name: highest_taken(item) for item in histories}
    judgement: Judgement = {"once": set(), "owners": set(), "ghosts": set(), "digests": set(), "numbers": set()}
    for item in found:
        assert item.entity is not None
        name = next(part for part in re.findall(r"_h\d+_", item.entity))
        hash = item.subject if item.message is None else message_hash(item.message)
        match item.rule, item.subject:
            case "at_most_one_state_change", _:
                judgement["once"].add((name, item.entity, hash))
            case "two_owners", _:
                judgement["owners"].add((name, item.entity, *item.versions))
            case "output_unknown", _ if item.message is not None:
                judgement["ghosts"].add((name, item.message.split("/")[1]))
            case "consistent_state_and_output", _ if item.detail.startswith("The transaction is recorded"):
                judgement["digests"].add((name, item.entity, hash))
            case "ledger_hole", str(told):
                channel, run = told.rsplit(" ", 1)
                first, last = map(int, run.split("-"))
                taken = highest[name].get((item.entity, channel), 0)
                judgement["numbers"] |= {(name, channel, number) for number in range(first, min(last, taken) + 1)}
            case "sequence_gap", str(told) if item.message is not None:
                channel, number = told.rsplit(" ", 1)
                judgement["numbers"].add((name, channel, int(number)))
    return judgement


def difference(rules: Judgement, invariants: Judgement) -> dict[str, tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]]:
    """What the rules alone find, and what the invariants alone do. Pytest takes minutes to describe how large sets differ."""
    both = ((name, rules[name], invariants[name]) for name in rules)
    return {name: (item - other, other - item) for name, item, other in both if item != other}


def comparable(history: History) -> set[tuple[Any, ...]]:
    """Messages of commits that are told at least twice, and whose outputs were published: of these both forms can judge."""
    published = {output.id for output in history.published}
    commits = [item for item in told(history.stored) if item.tx is not None and published.issuperset(item.outputs)]
    times = Counter((commit.entity, commit.message, commit.tx) for commit in commits)
    return {(history.name, entity, message) for (entity, message, _), number in times.items() if number > 1}


def highest_taken(history: History) -> dict[tuple[str, str], int]:
    highest: dict[tuple[str, str], int] = {}
    for commit in told(history.stored):
        if commit.place is not None:
            channel, number = commit.place
            highest[commit.entity, channel] = max(number, highest.get((commit.entity, channel), 0))
    return highest


def drawn(random: Random) -> tuple[str, str, int, list[str]]:
    """Strategies, seed and damages of a history; half have read models, which have damages of their own."""
    reader = random.choice([*sorted(READERS), "resequencer", "resequencer"])
    damages = random.choices(sorted(DAMAGES), k=random.randrange(4))
    return random.choice(sorted(SENDERS)), reader, random.getrandbits(32), damages


@settings(
    database=None,
    max_examples=1,
    phases=[Phase.generate],  # A smaller number is no simpler history.
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32))
def test_rules_and_invariants_find_the_same(kept: Kept, seed: int) -> None:
    async def play() -> list[History]:
        random = Random(seed)
        return [await history(f"_h{number}_", drawn(random)) for number in range(MANY)]

    with patch.multiple(draft, MOST_MARKS=100):  # No page is cut, so that ledgers tell all.
        histories = asyncio.run(play())
    documents = kept(row for item in histories for row in item.rows)
    thresholds = Thresholds(live_since=NOW - timedelta(days=20), grace=timedelta(0))
    judgement = by_rules(histories, judged(facts_in(documents), thresholds, seconds()))
    expected: Judgement = {}
    for item in histories:
        for compared, found in by_invariants(item).items():
            expected.setdefault(compared, set()).update(found)
    both = {item for history in histories for item in comparable(history)}
    for form in (judgement, expected):
        form["digests"] &= both
    assert difference(judgement, expected) == {}
    assert all(len(found) > 1 for found in expected.values())
