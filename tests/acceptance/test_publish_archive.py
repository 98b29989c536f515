"""What is published: the app and the library alone, with no packages but those they ask for, do their work."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import aiohttp
import pytest
from azure.storage.queue import QueueServiceClient

from demo.stack import QUEUES, ROOT, create_containers
from devtools.locks import cut, wanted
from devtools.publishing import build_archive, published_files
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.hosting import SECONDS

pytestmark = pytest.mark.acceptance
HERE: Final = Path(__file__).parent
MOST_BYTES: Final = 1_000_000
ABSENT: Final = (
    "demo",
    "devtools",
    "verification",
    "tests",
    "spark_jobs",
    "benchmarks",
    "local_cosmos",
    "pyspark",
    "hypothesis",
    "pytest",
    "croniter",
    "lark",
)
"""What the app must not need: ours that is not published, and packages that only developers have."""


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "app.zip"
    build_archive(ROOT, path)
    return path


@pytest.fixture(scope="session")
def app(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, unpacked where nothing else is."""
    folder = tmp_path_factory.mktemp("app")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


def environment_with(part: str, base: str, folder: Path) -> Path:
    """The Python of a new environment that has this part of the lock and nothing else."""
    requirements = folder / "lock.txt"
    requirements.write_text(cut((ROOT / "locks" / "all.txt").read_text(), wanted(part)))
    subprocess.run([base, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "--require-hashes")
    subprocess.run([python, "-m", "pip", "install", *quiet, "-r", requirements], check=True)
    return python


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with("app", sys.executable, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def newer_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python 3.13 with what the app asks for, and Microsoft's engine."""
    known = [shutil.which("python3.13"), *map(str, Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13"))]
    for base in known:
        if base and subprocess.run([base, "-c", ""], check=False, capture_output=True).returncode == 0:
            return environment_with("engine", base, tmp_path_factory.mktemp("engine"))
    pytest.skip("Microsoft's engine needs Python 3.13, which is not there.")


@pytest.fixture
def settings(storage: Azurite, cosmos: RunningEmulator) -> dict[str, str]:
    """Settings of the app, of a database and queues that are new, and nothing else of this environment."""
    database = f"published-{uuid4().hex}"
    create_containers(cosmos, database)
    with QueueServiceClient.from_connection_string(storage.connection_string) as queues:
        for queue in {item.name for item in queues.list_queues()} & set(QUEUES):
            queues.get_queue_client(queue).clear_messages()
    return {
        "AzureWebJobsStorage": storage.connection_string,
        "COSMOS__accountEndpoint": cosmos.endpoint,
        "COSMOS__accountKey": cosmos.key,
        "COSMOS__database": database,
        "PATH": os.environ["PATH"],
    }


def hosting(python: Path, app: Path) -> list[str]:
    """The command that hosts an app in its own environment."""
    packages = sysconfig.get_path("purelib")
    return [
        str(python),
        "-I",
        str(HERE / "archive_host.py"),
        str(ROOT / "packages" / "function-host"),
        packages,
        "--app",
        str(app),
    ]


@contextmanager
def hosted(python: Path, app: Path, settings: dict[str, str]) -> Iterator[str]:
    """Host an app; the address where it answers."""
    host = subprocess.Popen(hosting(python, app), cwd=app, env=settings, stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    try:
        yield json.loads(host.stdout.readline())["http"]
    finally:
        host.terminate()
        host.communicate(timeout=SECONDS)
    assert host.returncode == 0


def test_it_holds_the_app_and_the_library_and_nothing_else(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert {name.split("/")[0] for name in names} == {
        "LICENSE",
        "exactlyonce",
        "function_app.py",
        "handlers",
        "host.json",
        "requirements.txt",
    }
    assert {Path(name).suffix for name in names if "/" in name} <= {".py", ".typed"}
    assert not [name for name in names if name.startswith("exactlyonce/testing/")]
    size = archive.stat().st_size
    print(f"The archive has {len(names)} files and {size:,} bytes.")
    assert size < MOST_BYTES


def test_rules_are_those_of_gitignore(tmp_path: Path) -> None:
    rules = "# a comment\n.*\nbuild\n*.log\n!kept.log\n/only\ndocs/\n"
    for name in ("app.py", "a/only/b.py", "a/build/b.py", "only", "x.log", "kept.log", "a/docs", "docs/a.md", ".git/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".funcignore").write_text(rules)
    assert [path.as_posix() for path in published_files(tmp_path)] == ["a/docs", "a/only/b.py", "app.py", "kept.log"]


async def test_it_processes_messages_with_nothing_but_what_it_asks_for(
    app: Path, python: Path, settings: dict[str, str]
) -> None:
    with hosted(python, app, settings) as address:
        async with aiohttp.ClientSession(address) as http, asyncio.timeout(SECONDS):
            for _ in range(2):
                key = {"Idempotency-Key": "k-1"}
                assert (await http.post("/api/games/g-1/shots", json={"position": 0}, headers=key)).status == 201
            score = await http.get("/api/games/g-1")
            while score.status == 404:
                await asyncio.sleep(0.1)
                score = await http.get("/api/games/g-1")
            assert await score.json() == {"hits": 1, "misses": 0, "streak": 1, "best": 1}


def test_the_app_comes_from_the_archive_and_what_is_not_in_it_cannot_be_imported(
    app: Path, python: Path, settings: dict[str, str], tmp_path: Path
) -> None:
    shutil.copy(app / "host.json", tmp_path)
    probe = f"""
import importlib
found = []
for name in {("pydantic", *ABSENT)!r}:
    try:
        found.append(importlib.import_module(name).__file__)
    except ImportError:
        pass
raise SystemExit(repr(found))
"""
    (tmp_path / "function_app.py").write_text(probe)
    ran = subprocess.run(
        hosting(python, tmp_path), env=settings, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    (found,) = json.loads(ran.stderr.strip().splitlines()[-1].replace("'", '"'))
    assert Path(found).is_relative_to(python.parents[1])


def test_it_processes_messages_on_microsofts_own_engine(
    app: Path, newer_python: Path, settings: dict[str, str]
) -> None:
    played = subprocess.run(
        [newer_python, "-I", HERE / "archive_engine.py", "3"],
        cwd=app,
        env=settings,
        capture_output=True,
        text=True,
        timeout=SECONDS * 2,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    assert json.loads(played.stdout) == {"hits": 3, "misses": 0, "streak": 3, "best": 3}


def test_microsofts_engine_keeps_the_contract_of_the_function_host(newer_python: Path) -> None:
    suite = ROOT / "packages" / "function-host" / "function_host_tests" / "test_contract.py"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "microsofts", suite],
        cwd=ROOT,
        env={**os.environ, "FUNCTION_HOST_ENGINE": str(newer_python)},
        capture_output=True,
        text=True,
        timeout=SECONDS * 2,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "skipped" not in ran.stdout
