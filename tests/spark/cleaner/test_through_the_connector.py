"""The whole clean-up through the connector's adapter, with the double of azure-cosmos-spark."""

from __future__ import annotations

from spark_jobs.job.configuration import Job
from spark_jobs.source.factory import source_of
from tests.spark.cleaner.conftest import Shops, fill, to_go
from tests.spark.cleaner.shop import DAY, TYPES


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
