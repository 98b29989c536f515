"""The quickstart does what it says: its files, as they stand in the page, are tested, hosted and asked."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from demo.stack import ROOT
from function_host.azurite import Azurite
from local_cosmos.inprocess import RunningEmulator
from tests.acceptance.hosting import SECONDS

pytestmark = pytest.mark.acceptance
PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text()
COPIED: Final = ("exactlyonce", "host.json", "requirements.txt", ".funcignore")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a reader of the page has."""
    folder = tmp_path_factory.mktemp("parcels")
    assert all(f"$EXACTLYONCE/{name}" in PAGE for name in COPIED)
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for name, text in re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_its_tests_pass(app: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=app, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "2 passed" in ran.stdout


@pytest.fixture
def address(app: Path, storage: Azurite, cosmos: RunningEmulator) -> Iterator[str]:
    """Where the app answers, hosted with the settings of this stack."""
    settings = {
        "AzureWebJobsStorage": storage.connection_string,
        "COSMOS__accountEndpoint": cosmos.endpoint,
        "COSMOS__accountKey": cosmos.key,
        "COSMOS__database": "parcels",
    }
    (app / "local.settings.json").write_text(json.dumps({"IsEncrypted": False, "Values": settings}))
    subprocess.run([sys.executable, "make_containers.py"], cwd=app, check=True, timeout=SECONDS)
    command = [sys.executable, "-m", "function_host", "--app", str(app)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        try:
            yield json.loads(host.stdout.readline())["http"]
        finally:
            host.terminate()


async def test_a_scan_that_is_sent_twice_counts_once(address: str) -> None:
    sent = re.findall(r"curl -i -X PUT http://127\.0\.0\.1:7071(\S+) -d (\w+)", PAGE)
    assert len(sent) > len(set(sent)) > 1
    async with aiohttp.ClientSession(address) as http, asyncio.timeout(SECONDS):
        for path, place in sent:
            assert (await http.put(path, data=place)).status == 202
        places: list[str] = []
        while len(places) < len(set(sent)):
            await asyncio.sleep(0.1)
            reply = await http.get("/api/parcels/p-1")
            places = (await reply.json())["places"] if reply.status == 200 else []
    (promised,) = (json.loads(one) for one in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    assert sorted(places) == sorted(promised["places"])
