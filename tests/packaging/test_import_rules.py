"""Who may import whom: the contracts in pyproject.toml hold, and would notice; and each SDK has its place."""

from __future__ import annotations

import ast
import fnmatch
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.packaging.sources import LIBRARY, ROOT, files, imports, module_of

SDKS = {
    "azure.cosmos": ("exactlyonce.stores.cosmos*", "spark_jobs", "spark_jobs.*"),
    "azure.storage.blob": ("exactlyonce.stores.blobs.azure*",),
    "azure.storage.queue": ("exactlyonce.transports.storage_queue*",),
    "azure.servicebus": ("exactlyonce.transports.service_bus*",),
    "opentelemetry": ("exactlyonce.telemetry.*",),
    "azure.functions": (
        "exactlyonce.hosting",
        "exactlyonce.hosting.*",
        "exactlyonce.testing.in_memory",  # It makes trigger messages, as the host does.
        "function_app",
    ),
}
AZURE = (
    "exactlyonce.stores.cosmos*",
    "exactlyonce.stores.blobs.azure*",
    "exactlyonce.transports.storage_queue*",
    "exactlyonce.transports.service_bus*",
    "exactlyonce.environment",
    "exactlyonce.hosting",
    "exactlyonce.hosting.*",
    "exactlyonce.testing.in_memory",
    "function_app",
    "spark_jobs",
    "spark_jobs.*",
)


def misplaced(module: str, imported: Iterable[str]) -> list[str]:
    """Imports of an SDK by a module that is not its place."""
    found = []
    for name in imported:
        elsewhere = AZURE if within(name, "azure") and name != "azure" else None
        places = next((places for sdk, places in SDKS.items() if within(name, sdk)), elsewhere)
        if places is not None and not any(fnmatch.fnmatch(module, place) for place in places):
            found.append(f"{module} imports {name}")
    return found


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_each_sdk_is_imported_in_its_place_only() -> None:
    found = [
        item
        for path in (*files("exactlyonce", "handlers", "spark_jobs"), ROOT / "function_app.py")
        for item in misplaced(module_of(path), imports(ast.parse(path.read_text())))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("exactlyonce.hosting.application", "from azure.cosmos.aio import CosmosClient"),
        ("exactlyonce.hosting.application", "from azure import cosmos"),
        ("exactlyonce.stores.cosmos.store", "import azure.storage.queue"),
        ("exactlyonce.stores.memory.store", "import azure.core"),
        ("exactlyonce.hosting.deliveries.claim_checks", "from azure.storage.blob.aio import BlobClient"),
        ("exactlyonce.transports.storage_queue", "from azure.storage import blob"),
        ("exactlyonce.stores.blobs.azure", "import azure.storage.queue"),
        ("exactlyonce.transports.storage_queue", "import azure.functions as func"),
        ("handlers.messages", "import azure.identity"),
        ("exactlyonce.hosting.application", "from opentelemetry import trace"),
    ],
)
def test_an_sdk_out_of_place_is_noticed(module: str, line: str) -> None:
    assert misplaced(module, imports(ast.parse(line)))


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_the_contracts_hold() -> None:
    linted = lint_imports(ROOT)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(
    ("path", "line", "contract"),
    [
        ("exactlyonce/protocols/outbox/protocol.py", "import exactlyonce.stores.port", "Imports point downwards"),
        ("exactlyonce/records/ledger.py", "import exactlyonce.effects", "Imports point downwards"),
        ("exactlyonce/newcomer.py", "", "Imports point downwards"),
        ("exactlyonce/stores/memory/store.py", "import exactlyonce.testing", "Imports point downwards"),
        ("exactlyonce/protocols/outbox/protocol.py", "import time", "Protocols, and all they stand on"),
        ("exactlyonce/testing/guarantee.py", "import azure.core", "Protocols, and all they stand on"),
        ("handlers/messages.py", "from exactlyonce.records import Output", "Business code imports"),
        ("exactlyonce/drivers/driver.py", "import devtools", "What is shipped"),
        ("exactlyonce/drivers/driver.py", "import spark_jobs", "What is shipped"),
        ("spark_jobs/__init__.py", "import exactlyonce.hosting", "Spark jobs"),
        ("spark_jobs/auditor/account_reader.py", "import spark_jobs.cleaner.scan", "Jobs import downwards"),
        ("spark_jobs/newcomer.py", "", "Jobs import downwards"),
        ("exactlyonce/drivers/driver.py", "import pytest", "Only the suites for adapters"),
    ],
)
def test_a_broken_contract_is_noticed(tmp_path: Path, path: str, line: str, contract: str) -> None:
    for folder in (LIBRARY, ROOT / "handlers", ROOT / "spark_jobs"):
        shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / path).open("a") as file:
        file.write(f"\n{line}\n")
    linted = lint_imports(tmp_path)
    assert linted.returncode == 1
    assert re.search(rf"{contract}[^A-Z]* BROKEN", " ".join(linted.stdout.split()))
