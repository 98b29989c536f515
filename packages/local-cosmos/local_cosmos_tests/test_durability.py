"""`--data DIR`: whatever was answered is there after the process was killed, and nothing is half there."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_cosmos.admin_client import AdminClient
from local_cosmos.raw_connection import RawConnection
from local_cosmos.storage.sqlite import FILE_NAME, DataInUseError, SqliteKeeper
from local_cosmos.values import parse
from local_cosmos_tests.accounts import LocalAccount
from local_cosmos_tests.commands import SIGNER, Process, run
from local_cosmos_tests.raw import BATCH, KEY, QUERY

DOCUMENTS = ["dbs", "d", "colls", "c", "docs"]
WRITERS = 16


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """Starts a process on the test's directory; none is left when the test ends."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Process("--admin", "--data", str(tmp_path)))


async def write_until_killed(process: Process, writer: int, answered: dict[str, int], enough: asyncio.Event) -> None:
    """Batches, each a counter and a message of the same number, one after the other."""
    connection = await RawConnection.open(process.endpoint)
    key = f"p{writer}"
    try:
        for number in range(1_000_000):
            counter, message = {"id": "counter", "pk": key, "n": number}, {"id": f"m{number}", "pk": key}
            body = [
                {"operationType": "Upsert", "resourceBody": counter},
                {"operationType": "Create", "resourceBody": message},
            ]
            answer = await connection.send(SIGNER.request("POST", DOCUMENTS, body, key=key, headers=BATCH))
            assert answer.status == 200
            answered[key] = number
            if sum(answered.values()) > 20 * WRITERS:
                enough.set()
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        connection.close()


async def test_after_a_kill_everything_answered_is_there_and_nothing_is_half_there(
    start: Callable[[], Process],
) -> None:
    process = start()
    await process.ask("POST", ["dbs"], {"id": "d"})
    await process.ask(
        "POST", ["dbs", "d", "colls"], {"id": "c", "partitionKey": KEY}, headers={"x-ms-offer-throughput": "20000"}
    )
    highest: dict[str, int] = {}
    for _ in range(2):
        answered: dict[str, int] = {}
        enough = asyncio.Event()
        writers = [asyncio.create_task(write_until_killed(process, n, answered, enough)) for n in range(WRITERS)]
        await enough.wait()
        process.stop(signal.SIGKILL)
        await asyncio.gather(*writers)
        process = start()
        for key, number in answered.items():
            counter = (await process.ask("GET", [*DOCUMENTS, "counter"], key=key)).content["n"]
            assert counter in {number, number + 1}, "one that was under way may be there, if it is there as a whole"
            text = {"query": "SELECT VALUE COUNT(1) FROM c"}
            counted = await process.ask("POST", DOCUMENTS, text, key=key, headers=QUERY)
            assert counted.content["Documents"] == [counter + 2]
            await process.ask("DELETE", [*DOCUMENTS, "counter"], key=key)
            for message in range(counter + 1):
                await process.ask("DELETE", [*DOCUMENTS, f"m{message}"], key=key)
        highest |= answered
    assert len(highest) == WRITERS


async def test_databases_containers_versions_tokens_ranges_and_clock_survive(start: Callable[[], Process]) -> None:
    process = start()
    for name in ("d", "gone"):
        await process.ask("POST", ["dbs"], {"id": name})
    definition = {"id": "c", "partitionKey": KEY, "defaultTtl": 60}
    for name in ("c", "dropped"):
        await process.ask("POST", ["dbs", "d", "colls"], definition | {"id": name})
    await process.ask("DELETE", ["dbs", "gone"])
    await process.ask("DELETE", ["dbs", "d", "colls", "dropped"])
    await process.ask("PUT", ["dbs", "d", "colls", "c"], definition | {"defaultTtl": 60_000})
    admin = AdminClient(process.endpoint)
    admin.split("d", "c", "0")
    await process.ask("POST", DOCUMENTS, {"id": "old", "pk": "p"}, key="p")
    admin.advance_clock(50_000)
    await process.ask("POST", DOCUMENTS, {"id": "\ud800", "pk": "p", "text": "é"}, key="p")
    written = await process.ask("POST", DOCUMENTS, {"id": "a", "pk": "p", "n": 1.5}, key="p")
    await process.ask("POST", DOCUMENTS, {"id": "b", "pk": "p"}, key="p")
    last = await process.ask("DELETE", [*DOCUMENTS, "b"], key="p")
    paths = [["dbs"], ["dbs", "d", "colls"], ["dbs", "d", "colls", "c", "pkranges"], [*DOCUMENTS, "a"]]
    before = [await process.ask("GET", path, key="p") for path in paths]
    process.stop(signal.SIGKILL)

    process = start()
    after = [await process.ask("GET", path, key="p") for path in paths]
    assert [answer.content for answer in after] == [answer.content for answer in before]
    token = {"x-ms-session-token": last.headers["x-ms-session-token"]}
    read = await process.ask("GET", [*DOCUMENTS, "a"], key="p", headers=token)
    assert (read.status, read.headers["etag"]) == (200, written.headers["etag"])
    guard = {"If-Match": written.headers["etag"]}
    replaced = await process.ask("PUT", [*DOCUMENTS, "a"], {"id": "a", "pk": "p"}, key="p", headers=guard)
    assert replaced.status == 200
    anew = await process.ask("POST", DOCUMENTS, {"id": "b", "pk": "p"}, key="p")
    assert anew.headers["etag"] not in {written.headers["etag"], replaced.headers["etag"]}
    assert (await process.ask("GET", [*DOCUMENTS, "old"], key="p")).status == 200
    AdminClient(process.endpoint).advance_clock(10_000)
    assert (await process.ask("GET", [*DOCUMENTS, "old"], key="p")).status == 404


def test_a_directory_serves_one_process_at_a_time(tmp_path: Path) -> None:
    keeper = SqliteKeeper(tmp_path)
    with pytest.raises(DataInUseError, match="locked"):
        SqliteKeeper(tmp_path)
    keeper.close()
    keeper = SqliteKeeper(tmp_path)
    refused = run("--data", str(tmp_path))
    keeper.close()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "locked" in refused.stderr


@pytest.mark.parametrize(
    "content", [b"nonsense, and more than a page of it. " * 200, None], ids=["no database", "newer"]
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / FILE_NAME
    if content is None:
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
    else:
        file.write_bytes(content)
    with pytest.raises(DataInUseError):
        SqliteKeeper(tmp_path)


writes = st.lists(
    st.tuples(st.sampled_from(["upsert", "delete"]), st.sampled_from("pq"), st.sampled_from("ab")), max_size=8
)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(writes, max_size=3))
def test_any_writes_are_the_same_after_reopening(tmp_path_factory: pytest.TempPathFactory, sessions: Any) -> None:
    directory = tmp_path_factory.mktemp("data")
    etags: list[str] = []
    for session in [[], *sessions]:
        keeper = SqliteKeeper(directory)
        account = LocalAccount(keeper=keeper)
        for operation, key, item in session:
            reply = account.ask(operation, {"id": item, "pk": key}, key, item=item)
            if operation == "upsert":
                etags.append(parse(reply.body)["_etag"])
        before = contents(account)
        keeper.close()
        keeper = SqliteKeeper(directory)
        assert contents(LocalAccount(keeper=keeper)) == before
        keeper.close()
    assert len(set(etags)) == len(etags), "an ETag was given twice"


def contents(account: LocalAccount) -> Any:
    listed = account.ask("list_items")
    changed = account.ask("change_feed", range_id="0", latest_versions=True)
    return listed.body, changed.body
