"""A clean-up that is killed, and one that goes on from there while everything is in trouble: the end is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from exactlyonce.values.lifetimes import Retention
from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from spark_jobs.source.feed_ranges import FeedRanges
from spark_jobs.source.port import Made
from tests.packaging.sources import ROOT
from tests.spark.cleaner.conftest import BUSY, LOST, Shops, fill, to_go
from tests.spark.cleaner.shop import create, everywhere, job
from tests.spark.conftest import BRIEF
from tests.spark.source.conftest import HASTE

LIMITS = {"horizon": 500}
RETENTION = timedelta(hours=1)


@pytest.fixture
def cosmos() -> Iterator[RunningEmulator]:
    """A local Cosmos whose time is moved from the past to the present: a command goes by the true time."""
    begun = time.time() - 9_000
    with running_emulator(AccountSettings(partitions=3), clock=Clock(lambda: begun)) as running:
        yield running


@pytest.fixture
def shops(spark: SparkSession, cosmos: RunningEmulator, tmp_path: Path) -> Shops:
    made = Shops(spark, cosmos, tmp_path)
    create(cosmos, made.database, Retention(RETENTION))
    fill(made, retention=8_400, horizon=600)
    return made


class Troubled(FeedRanges):
    """While it deletes, partitions split and the application goes on."""

    def __init__(self, shops: Shops) -> None:
        super().__init__(shops.spark, shops.account, shops.database, patience=HASTE)
        self._shops = shops

    def delete(self, container: str, rows: DataFrame) -> Made:
        if container != "shops":
            return super().delete(container, rows)
        application = threading.Thread(target=self._shops.process, args=(everywhere(range(9, 11)),))
        application.start()
        self._shops.cosmos.split(self._shops.database, container, "0")
        try:
            return super().delete(container, rows)
        finally:
            application.join()


def killed(shops: Shops) -> None:
    """Start the command, and kill it once it has deleted what goes of the first of two containers."""
    file = shops.folder / "job.json"
    file.write_text(job(shops.database, endpoint=shops.cosmos.endpoint, **LIMITS).text())
    shops.fault(container="shops", operations=("batch", "delete"), when="before", action="hang", skip=1)
    command = [sys.executable, "-m", "spark_jobs.cleanup", "--config", str(file), "--delete"]
    command += ["--out", str(shops.folder / "cli")]
    environment = {**os.environ, "COSMOS__accountKey": shops.cosmos.key, "JAVA_TOOL_OPTIONS": BRIEF}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "staged messages" in line:
                break
        assert process.poll() is None, "".join(lines)
        os.killpg(process.pid, signal.SIGKILL)
        process.stderr.read()
    shops.cosmos.clear_faults()


def test_killed_and_run_again_in_trouble_it_ends_as_if_nothing_had_happened(shops: Shops) -> None:
    before, going = shops.documents(), to_go(shops, 3600, LIMITS["horizon"])
    killed(shops)
    left = going & set(shops.documents())
    assert 10 < len(left) <= len(going) - 5
    assert set(before) - set(shops.documents()) == going - left
    assert not (shops.folder / "cli" / "summary.json").exists()

    busy = {"when": "before", "action": "status", "status": 429, "retry_after_ms": 1, "times": 2}
    delete = {"container": "shops", "operations": ("batch",), "body_contains": "Delete"}
    for rule in ({"operations": ("query",)}, {"operations": ("read",)}, delete):
        shops.fault(**rule, **busy)
    unanswered = shops.fault(**delete, when="after", action="status", status=408, times=1)
    done = shops.clean(source=Troubled(shops), delete=True, limits=LIMITS, retention=RETENTION)
    assert shops.names("removed") | shops.names("gone") == left
    assert done.total("removed") + done.total("gone") == len(left)
    assert {fault.rule_id: fault.hit for fault in shops.cosmos.faults()}[unanswered] == 1
    after = shops.documents()
    assert set(before) - set(after) == going
    assert all(after[name]["_etag"] == before[name]["_etag"] for name in set(before) - going if is_old(before[name]))
    shops.cosmos.clear_faults()
    states = {item["id"]: item["total"] for _, item in shops.everything() if "total" in item}
    assert states["outbox-s"] == sum(range(1, 11)) + sum(BUSY) + sum(BUSY) + 100 * len(BUSY)
    shops.process(everywhere(range(6, 11)))
    assert {item["id"]: item["total"] for _, item in shops.everything() if "total" in item} == states


def is_old(document: dict[str, object]) -> bool:
    return document.get("tx") in LOST or "version" in document
