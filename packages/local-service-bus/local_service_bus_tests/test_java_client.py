"""An application of Microsoft's Service Bus client for Java finds what its author would expect of the service."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as XmlTree

from local_service_bus.testing import endpoint
from local_service_bus.topology import Topology
from local_service_bus_tests.test_go_client import QUEUES, play

PROJECT = Path(__file__).parent / "java"
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java for a minute: to compile what it runs any better takes longer than the tests."""


def test_an_application_of_azure_messaging_servicebus_runs_on_the_local_service_bus(tmp_path: Path) -> None:
    for tool in ("mvn", "java"):
        assert shutil.which(tool), f"{tool} is needed for these tests, and is not installed (Java 17, Maven 3.8)."
    with endpoint(Topology(QUEUES)) as running:
        played = run_maven([f"-Doutput.directory={tmp_path}", f"-Dconnection={running.connection_string}"])
    assert played.returncode == 0, played.stdout
    (report,) = (tmp_path / "surefire-reports").glob("TEST-*.xml")
    suite = XmlTree.parse(report).getroot()  # noqa: S314  # Surefire wrote it a moment ago.
    assert int(suite.get("tests", "0")) > 0, "No test of Java ran."
    assert suite.get("skipped") == "0"


def run_maven(settings: list[str]) -> subprocess.CompletedProcess[str]:
    """Run all tests. Only when something is not there yet, it is downloaded."""
    manners = ["--quiet", "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never"]
    command = ["mvn", *manners, f"--file={PROJECT}", *settings, "test"]
    offline = play([*command, "--offline"], JDK_JAVA_OPTIONS=BRIEF)
    return play(command, JDK_JAVA_OPTIONS=BRIEF) if "offline mode" in offline.stdout else offline
