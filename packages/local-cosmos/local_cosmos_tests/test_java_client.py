"""The Spark connector's calls, made by the Java SDK (`com.azure:azure-cosmos`) that the connector stands on.

Two emulators run, one over http and one over https; Maven runs all Java tests against each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as XmlTree

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from local_cosmos.inprocess import RunningEmulator, running_emulator

PROJECT = Path(__file__).parent / "java"
PASSWORD = "of a store without secrets"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java for a minute: to compile what it runs any better takes longer than the tests."""


@dataclass(frozen=True)
class Suite:
    """What surefire reports of one class of tests."""

    name: str
    seconds: float
    passed: list[str]
    failed: list[str]
    skipped: list[str]


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
    over_http, over_https = (read_reports(target / name) for name in ("over-http", "over-https"))
    print(summary("over http", over_http), summary("over https", over_https), sep="\n")
    assert done.returncode == 0, done.stdout
    assert names(over_http), "No Java test ran."
    assert names(over_http) == names(over_https)
    unsuccessful = [name for suite in over_http + over_https for name in suite.failed + suite.skipped]
    assert not unsuccessful, done.stdout


def run_maven(settings: list[str]) -> subprocess.CompletedProcess[str]:
    """Run all Java tests, those after a failure, too. Only when something is not there yet, it is downloaded."""
    manners = ["--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"]
    command = ["mvn", *manners, "-Dmaven.test.failure.ignore=true", f"--file={PROJECT}", *settings, "test"]
    offline = run([*command, "--offline"])
    return run(command) if "offline mode" in offline.stdout else offline


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JDK_JAVA_OPTIONS": BRIEF}
    return subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def read_reports(directory: Path) -> list[Suite]:
    return [read_report(report) for report in sorted(directory.glob("TEST-*.xml"))]


def read_report(report: Path) -> Suite:
    suite = XmlTree.parse(report).getroot()  # noqa: S314  # Surefire wrote it a moment ago.
    passed: list[str] = []
    failed: list[str] = []
    skipped: list[str] = []
    for case in suite.iter("testcase"):
        unsuccessful = case.find("failure") is not None or case.find("error") is not None
        kind = failed if unsuccessful else skipped if case.find("skipped") is not None else passed
        kind.append(case.get("name", "").removesuffix("()").replace("_", " "))
    name = suite.get("name", "").rpartition(".")[2]
    return Suite(name, float(suite.get("time", "0")), passed, failed, skipped)


def names(suites: list[Suite]) -> list[tuple[str, str]]:
    return sorted((suite.name, name) for suite in suites for name in suite.passed + suite.failed + suite.skipped)


def summary(title: str, suites: list[Suite]) -> str:
    lines = [f"{title}: {len(names(suites))} Java tests in {sum(suite.seconds for suite in suites):.1f} s"]
    for suite in suites:
        lines.append(f"  {suite.name}")
        lines += [f"    passed   {name}" for name in suite.passed]
        lines += [f"    FAILED   {name}" for name in suite.failed]
        lines += [f"    skipped  {name}" for name in suite.skipped]
    return "\n".join(lines)
