"""The examples of docs/trouble.md run."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos_tests.node import require_node

pytest_plugins = ["pytester"]

PACKAGE = Path(__file__).resolve().parents[1]
PAGE = (PACKAGE / "docs" / "trouble.md").read_text(encoding="utf-8")
JAVA = PACKAGE / "local_cosmos_tests/java/src/test/java/localcosmos/TroubleTest.java"
PATIENCE_SECONDS = 60


def blocks(language: str) -> list[str]:
    return re.findall(f"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_test_in_python_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_of_the_page=blocks("python")[0])
    result = pytester.runpytest_inprocess("-p", "local_cosmos.pytest_plugin", "-p", "no:asyncio")
    result.assert_outcomes(passed=1)


def test_a_story_is_played_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_emulator(story=tmp_path / "story.jsonl") as emulator:
        emulator.add_fault(FaultRule("shop"))
    monkeypatch.chdir(tmp_path)
    exec(blocks("python")[1], {})  # noqa: S102
    assert capsys.readouterr().out == ""


def test_the_program_in_javascript_runs(tmp_path: Path) -> None:
    require_node("@azure/cosmos")
    program = Path(__file__).parent / "javascript" / f".page-{os.getpid()}.mjs"  # Where Node finds the client.
    program.write_text(blocks("javascript")[0])
    try:
        with running_emulator() as emulator:
            environment = {**os.environ, "COSMOS_ENDPOINT": emulator.endpoint, "COSMOS_KEY": emulator.key}
            ran = subprocess.run(
                ["node", str(program)],  # noqa: S607
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
    finally:
        program.unlink()
    assert ran.returncode == 0, ran.stderr


def test_the_example_in_java_is_a_part_of_the_java_tests() -> None:
    (example,) = blocks("java")
    assert textwrap.indent(example, 8 * " ", lambda line: bool(line.strip())) in JAVA.read_text(encoding="utf-8")


@pytest.mark.parametrize("field", FaultRule.__dataclass_fields__)
def test_every_field_of_a_rule_is_explained(field: str) -> None:
    assert f"`{field}`" in PAGE
