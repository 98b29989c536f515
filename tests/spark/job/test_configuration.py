"""The job file: what it says, what it must not say, and that all its problems are reported at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from demo.strategies import STRATEGIES
from exactlyonce import ConfigurationError, Entity, Outbox
from exactlyonce.values.lifetimes import duration
from handlers.leader_board import boards
from handlers.shooting_range import ranges
from spark_jobs.auditor.judgement import thresholds_of
from spark_jobs.job.configuration import Account, EntityPlace, Job, load
from spark_jobs.transforms.facts import Thresholds
from tests.spark.application import beginning

KEY = "c2VjcmV0IGtleQ=="
ENVIRONMENT = {"COSMOS__accountEndpoint": "https://a.example.org/"}
RANGE = {"type": "range", "container": "games", "partition_key": ["/gameId"], "protocol": "outbox"}
FILE: dict[str, Any] = {"database": "shooting-range", "entities": [RANGE]}


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(content: object) -> Path:
        path = tmp_path / "job.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def refused(content: object) -> str:
    """The problems of a job."""
    with pytest.raises(ConfigurationError) as caught:
        Job.read(content)
    return str(caught.value)


def test_a_small_file_is_enough(written: Any) -> None:
    job, account = load(written(FILE), ENVIRONMENT)
    assert job.library == "exactlyonce"
    assert job.entities == (
        EntityPlace(type="range", container="games", partition_key=("/gameId",), protocol="outbox"),
    )
    assert job.horizon == timedelta(hours=1)
    assert account == Account("https://a.example.org/")


def test_durations_are_iso_8601_or_seconds(written: Any) -> None:
    job, _ = load(written({**FILE, "gap_after": "P20D", "grace": 90, "owed_after": "PT1H30M"}), ENVIRONMENT)
    assert (job.gap_after, job.grace, job.owed_after) == (
        timedelta(days=20),
        timedelta(seconds=90),
        timedelta(hours=1, minutes=30),
    )


def test_the_environment_has_precedence(written: Any) -> None:
    file = {**FILE, "endpoint": "https://old.example.org/"}
    job, account = load(written(file), {**ENVIRONMENT, "COSMOS__database": "other", "COSMOS__clientId": "me"})
    assert (job.database, account.endpoint, account.client_id) == ("other", "https://a.example.org/", "me")


def test_the_file_may_say_where(written: Any) -> None:
    _, account = load(written({**FILE, "endpoint": "https://b.example.org/"}), {"COSMOS__accountKey": KEY})
    assert account == Account("https://b.example.org/", KEY)
    assert KEY not in repr(account)


def test_a_service_principal_is_whole(written: Any) -> None:
    principal = {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "me", "AZURE_CLIENT_SECRET": "hush"}
    _, account = load(written(FILE), {**ENVIRONMENT, **principal})
    assert account == Account("https://a.example.org/", None, "me", "t", "hush")
    assert "hush" not in repr(account)
    with pytest.raises(ConfigurationError, match="but AZURE_CLIENT_ID and AZURE_TENANT_ID is not") as caught:
        load(written(FILE), {**ENVIRONMENT, "AZURE_CLIENT_SECRET": "hush"})
    assert "hush" not in str(caught.value)


def test_a_job_survives_being_written() -> None:
    job = Job.read({**FILE, "gap_after": "P20D", "live_since": "2026-11-21T10:00:00Z", "rate": 400})
    assert Job.read(json.loads(job.text())) == job
    assert job.live_since == datetime(2026, 11, 21, 10, tzinfo=UTC)


def test_rules_judge_by_the_limits_of_a_job_file_that_names_none(written: Any) -> None:
    job, _ = load(written(json.dumps(FILE)), ENVIRONMENT)
    plain = job.model_copy(update={"consumers": {}, "live_since": None})
    assert thresholds_of(plain, beginning(0)) == Thresholds(types=frozenset(entity.type for entity in job.entities))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, r"job\.json cannot be read: No such file"),
        *((text, r"job\.json is not JSON") for text in (b"", b"{", b"{'a': 1}", b"[" * 100_000)),
        (b'{"database": "a", "database": "b"}', r"job\.json is not JSON: it names 'database' twice"),
        ('{"database": "Zürich"}'.encode("latin-1"), r"job\.json is not JSON"),
        (b"[]", "has to hold a JSON object"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "job.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=words):
        load(path, ENVIRONMENT)


def test_a_mark_of_byte_order_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(FILE), encoding="utf-8-sig")
    assert load(path, ENVIRONMENT)[0].database == "shooting-range"


WRONG: list[tuple[dict[str, Any], str]] = [
    *(
        ({"endpoint": endpoint}, "endpoint: ")
        for endpoint in ("a.example.org", "ftp://a", "AccountEndpoint=https://a/;AccountKey=hush", "https://me:hush@a/")
    ),
    ({"entities": []}, "entities: "),
    (
        {"entities": [{**RANGE, "key": "/id"}]},
        "entities[0].key is not known here; known are: type, container, partition_key, protocol",
    ),
    ({"entities": [RANGE, {**RANGE, "container": "others"}]}, "entities name the type 'range' twice"),
    (
        {"entities": [RANGE, {**RANGE, "type": "board", "partition_key": ["/id"]}]},
        "say two things of the container 'games': the partition key /gameId (entity 'range') and /id",
    ),
    *(
        ({"entities": [{**RANGE, "partition_key": paths}]}, "entities[0].partition_key")
        for paths in ([], ["id"], ["/a", "/b", "/c", "/d"])
    ),
    (
        {"consumers": {"leader-board": "board"}},
        "consumers says that 'board' reads 'leader-board', which is none of the entities: range",
    ),
    ({"library": "games"}, "library is the container of entity 'range', too"),
    ({"entities": [{**RANGE, "container": "exactlyonce"}]}, "library is the container of entity 'range', too"),
    ({"live_since": "2026-11-21T10:00:00"}, "live_since: "),
    *(({"rate": rate}, "rate: ") for rate in (0, -1, "fast", float("inf"))),
    *(({name: 0}, f"{name}: ") for name in ("horizon", "owed_after", "lost_after", "gap_after", "garbage_after")),
]
"""What a job file cannot say, in place of what it says, and the problem."""


@pytest.mark.parametrize(("changes", "problem"), WRONG)
def test_a_wrong_file_is_refused_with_its_problem(changes: dict[str, Any], problem: str) -> None:
    text = refused({**FILE, **changes})
    assert problem in text
    assert "hush" not in text


def test_everything_is_reported_at_once_file_and_environment(written: Any) -> None:
    file = {"entities": [{**RANGE, "protocol": "inbox"}, RANGE], "horizon": "P1M", "speed": 3, "library": ""}
    file["key"] = "a secret in the wrong place"
    with pytest.raises(ConfigurationError) as caught:
        load(written(file), {"COSMOS__accountKey": "no key!"})
    text = str(caught.value)
    for problem in (
        "COSMOS__accountKey is no account key",
        "database is missing",
        "entities[0].protocol: Input should be 'outbox', 'colocated', 'stream' or 'resequencer'",
        "horizon has to be an ISO 8601 duration",
        "speed is not known here; known are: database, ",
        "library: ",
        "there is no endpoint: set COSMOS__accountEndpoint, or `endpoint`",
        "key is not known here",
    ):
        assert problem in text
    assert "a secret" not in text
    assert "no key!" not in text


def test_a_problem_of_one_field_does_not_hide_those_of_others() -> None:
    text = refused({**FILE, "entities": [RANGE, RANGE], "consumers": {"q": 7}, "grace": -1})
    assert "name the type 'range' twice" in text
    assert "consumers.q: " in text
    assert "grace has to be" in text


@pytest.mark.parametrize("key", ["not base64!", "abc"])
def test_a_malformed_key_is_reported_and_not_shown(key: str) -> None:
    job = Job.read({**FILE, "endpoint": "https://a.example.org/"})
    with pytest.raises(ConfigurationError, match="is no account key") as caught:
        Account.of(job, {"COSMOS__accountKey": key})
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["P1M", "P1Y", "P", "PT", "1 day", "-10", "P1DT", "-P1D", "P-1D", "", True, None, -1, float("nan"), float("inf")],
)
def test_a_value_that_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="has to be an ISO 8601 duration"):
        duration(value)


@pytest.mark.parametrize("value", [1e12, "P36501D", "P99999W"])
def test_more_than_a_hundred_years_is_a_slip(value: object) -> None:
    with pytest.raises(ValueError, match="not over a hundred years"):
        duration(value)


@pytest.mark.parametrize(
    ("value", "seconds"), [("P2W", 1_209_600), ("P1DT1H1M1.5S", 90_061.5), (0, 0), (0.5, 0.5), ("PT0S", 0)]
)
def test_a_duration_is_read(value: object, seconds: float) -> None:
    assert duration(value) == timedelta(seconds=seconds)


def test_the_entities_of_an_application_give_the_job_file() -> None:
    job = Job.of([ranges, boards], database="shooting-range", consumers={"leader-board": "board"})
    assert [(entity.type, entity.container, entity.partition_key, entity.protocol) for entity in job.entities] == [
        ("range", "games", ("/gameId",), "outbox"),
        ("board", "boards", ("/gameId",), "resequencer"),
    ]


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_has_a_protocol(name: str) -> None:
    (place,) = Job.of([ranges.using(STRATEGIES[name])], database="d").entities
    assert place.protocol == {"colocated": "colocated", "stream": "stream"}.get(name, "outbox")


def test_a_strategy_that_is_not_known_is_refused() -> None:
    class Newer(Outbox):
        pass

    other: Entity[Any] = ranges.using(Newer())
    with pytest.raises(ConfigurationError, match="'range' runs on Newer, which the jobs do not know"):
        Job.of([other], database="d")
