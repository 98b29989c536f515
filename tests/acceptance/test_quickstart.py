"""The quickstart does what it says: a new app runs under `exactlyonce dev`, and counts a line once."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from demo.stack import ROOT
from exactlyonce_dev.new import TEMPLATE
from exactlyonce_dev_tests.apps import free_port
from function_host.azurite import ACCOUNT_KEY

pytestmark = pytest.mark.acceptance
PAGE: Final = (ROOT / "docs" / "quickstart.md").read_text()
COMMAND: Final = "import sys; from exactlyonce_dev.dev import main; sys.exit(main())"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the app answers, on ports of its own."""
    app = tmp_path / "shop"
    shutil.copytree(TEMPLATE, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "node_modules").symlink_to(ROOT / "node_modules")
    settings = json.loads((app / "local.settings.json.example").read_text())
    account = f"AccountName=devstoreaccount1;AccountKey={ACCOUNT_KEY}"
    settings["Values"] |= {
        "COSMOS__accountEndpoint": f"http://127.0.0.1:{free_port()}/",
        "AzureWebJobsStorage": f"{account};QueueEndpoint=http://127.0.0.1:{free_port()}/devstoreaccount1;",
    }
    (app / "local.settings.json").write_text(json.dumps(settings))
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--http-port", "0", "--console-port", "0", "--json"],
        cwd=app,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["http"]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0


def test_a_line_that_is_sent_twice_counts_once(address: str) -> None:
    sent = re.findall(r"curl -i -X PUT http://127\.0\.0\.1:7071(\S+) -d '(.+)'", PAGE)
    assert len(sent) > len(set(sent)) > 1
    for path, body in sent:
        request = urllib.request.Request(f"{address}{path}", body.encode(), method="PUT")  # noqa: S310
        with urllib.request.urlopen(request) as reply:  # noqa: S310
            assert reply.status == 202
    (promised,) = (json.loads(match_text) for match_text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    while _shown(f"{address}/api/stocks/tea") != promised:  # The time limit of the test ends it.
        time.sleep(0.1)


def _shown(address: str) -> object:
    try:
        with urllib.request.urlopen(address) as reply:  # noqa: S310
            return json.load(reply)
    except urllib.error.HTTPError:
        return None
