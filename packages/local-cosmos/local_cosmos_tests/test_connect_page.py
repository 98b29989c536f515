"""The examples of docs/connect.md run, over http and https."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local_cosmos.inprocess import running_emulator
from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos_tests.node import require_node
from local_cosmos_tests.pages import PACKAGE, account, blocks, is_part_of, run_javascript
from local_cosmos_tests.test_go_client import require_go

PAGE = "docs/connect.md"
GO = Path(__file__).parent / "go"


def test_the_page_has_the_well_known_key() -> None:
    assert f"COSMOS_KEY={WELL_KNOWN_KEY}\n" in blocks(PAGE, "sh")[0]


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_the_program_in_python_connects(tls: bool) -> None:
    with running_emulator(tls=tls) as emulator:
        command = [sys.executable, "-c", blocks(PAGE, "python")[0]]
        ran = subprocess.run(command, env=account(emulator), cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("ada\n", 0), ran.stderr


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_the_program_in_javascript_connects(tls: bool, tmp_path: Path) -> None:
    require_node("@azure/cosmos")
    with running_emulator(tls=tls) as emulator:
        environment = account(emulator) | {"NODE_EXTRA_CA_CERTS": str(written(emulator.certificate, tmp_path))}
        assert run_javascript(blocks(PAGE, "javascript")[0], environment) == "ada\n"


def test_the_example_in_java_is_a_part_of_the_java_tests() -> None:
    (example,) = blocks(PAGE, "java")
    assert is_part_of(example, "java/src/test/java/localcosmos/ConnectTest.java", 8 * " ")


def test_the_example_in_go_is_a_part_of_the_go_tests() -> None:
    (example,) = blocks(PAGE, "go")
    assert is_part_of(example, "go/connect/connect_test.go", "\t")


def test_the_program_in_go_connects_over_https(tmp_path: Path) -> None:
    require_go()
    with running_emulator(tls=True) as emulator:
        environment = account(emulator) | {"SSL_CERT_FILE": str(written(emulator.certificate, tmp_path))}
        command = ["go", f"-C={GO}", "test", "-count=1", "./connect"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def written(certificate: bytes | None, folder: Path) -> Path:
    """A file with the certificate, or an empty one over http."""
    file = folder / "cosmos.pem"
    file.write_bytes(certificate or b"")
    return file
