"""The Spark connector's calls, made by the Java SDK (`com.azure:azure-cosmos`) that the connector stands on.

Two emulators run, one over http and one over https; Maven runs all Java tests against each.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as XmlTree

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from local_cosmos.inprocess import RunningEmulator, running_emulator
from local_cosmos_tests.commands import play

PROJECT = Path(__file__).parent / "java"
PASSWORD = "of a store without secrets"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java for a minute: to compile what it runs any better takes longer than the tests."""


@pytest.fixture
def plain() -> Iterator[RunningEmulator]:
    with running_emulator() as emulator:
        yield emulator


@pytest.fixture
def encrypted() -> Iterator[RunningEmulator]:
    with running_emulator(tls=True) as emulator:
        yield emulator


@pytest.fixture
def trust_store(encrypted: RunningEmulator, tmp_path: Path) -> Path:
    """The certificate of the emulator over https, as Java wants it."""
    assert encrypted.certificate is not None
    certificate = PKCS12Certificate(x509.load_pem_x509_certificate(encrypted.certificate), b"emulator")
    path = tmp_path / "trusted.p12"
    path.write_bytes(serialize_java_truststore([certificate], BestAvailableEncryption(PASSWORD.encode())))
    return path


def test_the_java_sdk_gets_what_the_spark_connector_needs_over_http_and_https(
    plain: RunningEmulator, encrypted: RunningEmulator, trust_store: Path, tmp_path: Path
) -> None:
    for tool in ("mvn", "java"):
        assert shutil.which(tool), f"{tool} is needed for these tests, and is not installed (Java 17, Maven 3.8)."
    target = tmp_path / "target"
    settings = {
        "output.directory": target,
        "http.endpoint": plain.endpoint,
        "https.endpoint": encrypted.endpoint,
        "account.key": plain.key,
        "trust.store": trust_store,
        "trust.store.password": PASSWORD,
    }
    done = run_maven([f"-D{name}={value}" for name, value in settings.items()])
    over_http, over_https = (outcomes(target / name) for name in ("over-http", "over-https"))
    assert done.returncode == 0, done.stdout
    assert over_http, "No Java test ran."
    assert over_http.keys() == over_https.keys()
    assert {*over_http.values(), *over_https.values()} == {"passed"}, done.stdout


def run_maven(settings: list[str]) -> subprocess.CompletedProcess[str]:
    """Run all Java tests, those after a failure, too. Only when something is not there yet, it is downloaded."""
    manners = ["--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"]
    command = ["mvn", *manners, "-Dmaven.test.failure.ignore=true", f"--file={PROJECT}", *settings, "test"]
    offline = play([*command, "--offline"], JDK_JAVA_OPTIONS=BRIEF)
    return play(command, JDK_JAVA_OPTIONS=BRIEF) if "offline mode" in offline.stdout else offline


def outcomes(directory: Path) -> dict[str, str]:
    """What became of each Java test, as surefire reports it: passed, or failure, error or skipped."""
    ended: dict[str, str] = {}
    for report in directory.glob("TEST-*.xml"):
        for case in XmlTree.parse(report).getroot().iter("testcase"):  # noqa: S314  # Surefire wrote it a moment ago.
            trouble = [kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None]
            ended[f"{case.get('classname')}.{case.get('name')}"] = trouble[0] if trouble else "passed"
    return ended
