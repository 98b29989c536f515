"""The examples of docs/trouble.md run."""

from __future__ import annotations

from pathlib import Path

import pytest

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.faults import FaultRule
from local_cosmos_tests.node import require_node
from local_cosmos_tests.pages import PACKAGE, account, blocks, is_part_of, run_javascript

pytest_plugins = ["pytester"]

PAGE = "docs/trouble.md"


def test_the_test_in_python_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_of_the_page=blocks(PAGE, "python")[0])
    result = pytester.runpytest_inprocess("-p", "local_cosmos.pytest_plugin", "-p", "no:asyncio")
    result.assert_outcomes(passed=1)


def test_a_story_is_played_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_emulator(story=tmp_path / "story.jsonl") as emulator:
        emulator.add_fault(FaultRule("shop"))
    monkeypatch.chdir(tmp_path)
    exec(blocks(PAGE, "python")[1], {})  # noqa: S102
    assert capsys.readouterr().out == ""


def test_the_program_in_javascript_runs() -> None:
    require_node("@azure/cosmos")
    with running_emulator() as emulator:
        run_javascript(blocks(PAGE, "javascript")[0], account(emulator))


def test_the_example_in_java_is_a_part_of_the_java_tests() -> None:
    (example,) = blocks(PAGE, "java")
    assert is_part_of(example, "java/src/test/java/localcosmos/TroubleTest.java", 8 * " ")


@pytest.mark.parametrize("field", FaultRule.__dataclass_fields__)
def test_every_field_of_a_rule_is_explained(field: str) -> None:
    assert f"`{field}`" in (PACKAGE / PAGE).read_text(encoding="utf-8")
