"""The whole clean-up on the local Cosmos, in a container with several physical partitions."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from pyspark.sql import DataFrame

from exactlyonce import ConfigurationError
from exactlyonce.effects.library import WritePage
from exactlyonce.records.ledger import Mark, Page
from exactlyonce.values.envelope import message_hash, milliseconds
from spark_jobs.cleanup import deletes_pages, run
from spark_jobs.job.configuration import Job
from spark_jobs.job.exits import Exit, ending
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Made, Query
from spark_jobs.spark.frames import LITTLE
from spark_jobs.spark.session import parallelism
from spark_jobs.work import source_of
from tests.spark.cleaner.conftest import PARTS, Name, Shops, fill, to_go
from tests.spark.cleaner.shop import DAY, HOUR, TYPES, App, everywhere, job, ref, within


def moment(shops: Shops) -> datetime:
    return datetime.fromtimestamp(shops.cosmos.now(), timezone.utc)


def of(shops: Shops, type: str, number: int) -> Name:
    """The document that records a payment."""
    entity, message = ref(type).key, f"web/m-{number}"
    (found,) = (
        name for name, item in shops.documents().items() if name[1] == entity and item.get("message") == message
    )
    return found


class Meddling(FeedRanges):
    """Between the archive and the deletion somebody writes one document anew, and deletes another."""

    def __init__(self, shops: Shops, change: Name, take: Name) -> None:
        super().__init__(shops.spark, shops.account, shops.database)
        self._shops, self._change, self._take = shops, change, take

    def delete(self, container: str, rows: DataFrame) -> Made:
        if container == self._change[0]:
            self._shops.put(container, {**self._shops.documents()[self._change], "written": "anew"})
            self._shops.remove(self._take)
        return super().delete(container, rows)


def test_a_dry_run_changes_nothing_and_reports_what_goes_then_an_archive_holds_all_that_went(shops: Shops) -> None:
    newer, blue = of(shops, "colocated", 1), ("exactlyonce", ref("outbox").key, "page:1")
    before = shops.documents()
    for name, more in ((newer, {"schema": 99}), (blue, {"colour": 'blue "ö"\n', "depth": [1.5, {"a": None}]})):
        shops.put(name[0], {**before[name], **more})
    shops.cosmos.advance_clock(31 * DAY)
    entity = ref("outbox").key
    shops.put("exactlyonce", {"id": "parked:x", "pk": entity, "kind": "parked", "entity": entity, "message": "web/x"})
    shops.process([item for name in ("s", "t") for item in everywhere(range(9, 12), name)])
    before, begun = shops.documents(), shops.cosmos.last_request()

    shops.spark.conf.set(PARTS, "2")
    dry = shops.clean()
    # Little is planned as little. How much is there now is not known before it was read.
    assert (shops.lines.parts["verdicts"], shops.lines.parts["documents that are left"]) == (LITTLE[PARTS], "2")
    assert shops.spark.conf.get(PARTS) == "2"
    shops.spark.conf.set(PARTS, LITTLE[PARTS])
    assert shops.writes_after(begun) == []
    charged = sum(request.charge for request in shops.cosmos.requests(begun) if request.database == shops.database)
    # The log has requests for documents only. Two tasks open the account, and one container each; the SDK looks for the regions
    # of the account once more, if there is time.
    assert dry.units in [pytest.approx(charged + opening) for opening in (4, 5, 6)]
    going = shops.names("goes")
    assert (dry.mode, dry.total("goes"), dry.total("removed")) == ("dry run", len(going), 0)
    assert blue in going
    kept = {count.kind: count.results for count in dry.counts if count.container == "shops"}
    assert kept["processed"]["unreadable"] == 1
    assert sum(number for count in dry.counts for number in count.results.values()) == len(before)
    assert sum(number for count in dry.counts for number in count.ages.values()) == len(going)

    changed, taken = of(shops, "colocated", 2), of(shops, "colocated", 3)
    archives = shops.folder / "archives"
    done = shops.clean(source=Meddling(shops, changed, taken), delete=True, archive=str(archives))
    assert shops.names("removed") == going - {changed, taken}
    assert (shops.names("changed meanwhile"), shops.names("gone")) == ({changed}, {taken})
    after = shops.documents()
    assert set(after) == set(before) - going | {changed}
    assert {newer, of_parked(entity)} <= set(after)
    assert sum(number for count in done.counts for number in count.results.values()) == len(before)

    archived = shops.spark.read.parquet(*map(str, archives.iterdir())).collect()
    assert {(row.container, row.entity, row.id): json.loads(row.document) for row in archived} == {
        name: before[name] for name in going
    }
    assert all(row.document == compact(before[row.container, row.entity, row.id]) for row in archived)

    assert json.loads((shops.folder / "out" / "summary.json").read_text())["mode"] == "delete"
    copies_change_nothing(shops)


def of_parked(entity: str) -> Name:
    return "exactlyonce", entity, "parked:x"


def compact(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def copies_change_nothing(shops: Shops) -> None:
    """Copies of young messages find what they left; the next ones are processed as ever."""
    states = {item["id"]: item["total"] for _, item in shops.everything() if "total" in item}
    assert len(shops.process(everywhere(range(9, 12)))) == 2 * 3  # Streams send again what they sent.
    assert {item["id"]: item["total"] for _, item in shops.everything() if "total" in item} == states
    shops.process(everywhere([12]))
    now = {item["id"]: item["total"] for _, item in shops.everything() if "total" in item}
    assert {id for id in states if now[id] != states[id]} == {f"{type}-s" for type in TYPES}


class Rewriting(FeedRanges):
    """Before documents are read as a whole for an archive, somebody writes one of them anew."""

    def __init__(self, shops: Shops, change: Name) -> None:
        super().__init__(shops.spark, shops.account, shops.database)
        self._shops, self._change = shops, change

    def read(self, *queries: Query) -> Made:
        if queries[0].columns == ("*",):
            self._shops.put(self._change[0], {**self._shops.documents()[self._change], "written": "anew"})
        return super().read(*queries)


def test_a_document_judged_and_then_written_anew_is_neither_archived_nor_deleted(empty: Shops) -> None:
    empty.process(everywhere([1, 2], types=["colocated"]))
    empty.cosmos.advance_clock(31 * DAY)
    empty.stage("outbox", "lost-today")
    empty.cosmos.advance_clock(2 * HOUR)
    changed, taken = of(empty, "colocated", 1), of(empty, "colocated", 2)
    staged = ("exactlyonce", ref("outbox").key, "staged:lost-today")
    archives = empty.folder / "archives"
    empty.clean(source=Rewriting(empty, changed), delete=True, archive=str(archives))
    assert set(empty.documents()) == {changed}
    assert (empty.names("changed meanwhile"), empty.names("removed")) == ({changed}, {taken, staged})
    archived = empty.spark.read.parquet(*map(str, archives.iterdir())).collect()
    assert {(row.container, row.entity, row.id) for row in archived} == {taken, staged}


def config(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command's option for a job file on these shops; the account's key is in the environment."""
    monkeypatch.setenv("COSMOS__accountKey", shops.cosmos.key)
    file = shops.folder / "job.json"
    file.write_text(job(shops.database, endpoint=shops.cosmos.endpoint).text())
    return ["--config", str(file)]


READS = 2
"""That one task reads of a container, a thousand rows each."""


def test_the_rate_of_the_command_line_is_what_its_tasks_keep_to(empty: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    with CosmosClient(empty.cosmos.endpoint, empty.cosmos.key) as client:
        library = client.get_database_client(empty.database).get_container_client("exactlyonce")
        for hundred in range(10 * READS):
            some = [{"id": f"page:{hundred}-{n}", "pk": "x", "kind": "page"} for n in range(100)]
            library.execute_item_batch([("create", (item,)) for item in some], "x")
    begun, rate = empty.cosmos.last_request(), 1000.0
    arguments = [*config(empty, monkeypatch), "--out", str(empty.folder / "out"), "--rate", str(rate)]
    assert ending(lambda: run(arguments, empty.cosmos.now)) is Exit.DONE

    asked = [
        request
        for request in empty.cosmos.requests(begun)
        if request.database == empty.database and request.charge > 20
    ]
    assert len(asked) == READS  # Nothing is old; in the end it reads what is there.
    share = rate / parallelism(empty.spark)
    for page, following in pairwise(asked):
        assert following.started - page.finished >= page.charge / share


def test_a_clean_up_by_a_wrong_clock_is_refused(empty: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [*config(empty, monkeypatch), "--delete"]
    wrong = empty.cosmos.now() - HOUR
    assert ending(lambda: run(arguments, lambda: wrong)) is Exit.UNSAFE


def test_a_folder_of_other_files_is_left_alone(empty: Shops) -> None:
    (empty.folder / "out").mkdir()
    (empty.folder / "out" / "mine.txt").touch()
    with pytest.raises(ConfigurationError, match="holds something else"):
        empty.clean()


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "much"])
def test_a_rate_that_is_no_number_above_zero_is_refused(rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["--config", "job.json", "--rate", rate])
    assert "--rate" in capsys.readouterr().err


ENTITIES, MARKS = 300, 17
"""Entities with a page each, of as many marks as leave a ledger together where messages come one at a time."""


def test_pages_cost_at_most_one_request_unit_for_each_message(empty: Shops) -> None:
    entities = [ref("outbox", f"s{number}") for number in range(ENTITIES)]
    mark = Mark(milliseconds(moment(empty)), message_hash("web/m"), "f", True, "abcd", "-").text
    times = (milliseconds(moment(empty)),) * 2

    async def write(app: App) -> None:
        for entity in entities:
            page = Page(entity.key, 1, MARKS + 16, *times, ".".join([mark] * MARKS), to=("receipts",))
            await app.store.perform(WritePage(entity, page, 60 * DAY))

    within(empty.cosmos, empty.database, write)
    empty.cosmos.advance_clock(31 * DAY)
    done = empty.clean(delete=True)
    assert done.total("removed") == ENTITIES
    units = (done.units or 0) / (ENTITIES * MARKS)
    print(f"{units:.2f} RU of clean-up for each message")
    assert units <= 1.0


def test_pages_are_left_to_the_store_where_the_application_says_so(shops: Shops) -> None:
    going = to_go(shops, 30 * DAY)
    done = shops.clean(delete=True, pages=False)
    pages = {name for name in going if name[2].startswith("page:")}
    assert (shops.names("removed"), len(pages)) == (going - pages, 2)
    assert pages <= set(shops.documents())
    assert "pages: left to the store, which deletes them (EXACTLYONCE__expiry)" in list(done.lines())


@pytest.mark.parametrize(("said", "deletes"), [(None, True), ("job", True), ("store", False)])
def test_a_setting_of_the_application_says_who_deletes_pages(said: str | None, deletes: bool) -> None:
    assert deletes_pages({} if said is None else {"EXACTLYONCE__expiry": said}) is deletes


def test_another_value_of_that_setting_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__expiry says who deletes pages"):
        deletes_pages({"EXACTLYONCE__expiry": "never"})


def test_the_connector_deletes_what_a_dry_run_by_feed_ranges_lists(empty: Shops, connector_jar: str) -> None:
    fill(empty, ["s"])
    before, going = empty.documents(), to_go(empty, 30 * DAY)
    dry = empty.clean()
    assert empty.names("goes") == going
    assert {"shops", "exactlyonce"} == {container for container, _, _ in going}

    job = Job.of(TYPES.values(), database=empty.database, source="connector")
    done = empty.clean(source=source_of(empty.spark, job, empty.account), delete=True)
    assert set(empty.documents()) == set(before) - going
    assert empty.names("removed") == going
    assert done.total("removed") == dry.total("goes") == len(going)
    assert done.units is None
