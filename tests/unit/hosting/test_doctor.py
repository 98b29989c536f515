"""The doctor on files, functions and index policies: each thing that goes wrong in Azure is found, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.effects.attempt import Strategy
from exactlyonce.hosting.doctor import (
    LIBRARY,
    Finding,
    of_host_json,
    of_triggers,
    queues_of,
    searched,
    triggers_of,
    unindexed,
)
from tests.packaging.sources import ROOT

GOOD = json.loads((ROOT / "host.json").read_text())


def found(folder: Path, queues: int = 2, **options: Any) -> list[Finding]:
    """Findings in a host.json with these options for queues; None leaves one out."""
    given = {**GOOD["extensions"]["queues"], **options}
    kept = {name: value for name, value in given.items() if value is not None}
    (folder / "host.json").write_text(json.dumps({**GOOD, "extensions": {"queues": kept}}))
    return list(of_host_json(folder, queues))


def test_the_samples_host_json_is_fine_and_its_polling_costs_a_dollar_for_two_queues(tmp_path: Path) -> None:
    (cost,) = found(tmp_path)
    assert cost.level == "cost"
    assert "2 queues, each asked every 2 s" in cost.text
    assert "1.05 USD" in cost.text


@pytest.mark.parametrize(
    ("options", "level", "words"),
    [
        ({"messageEncoding": "none"}, "wrong", "the library sends base64"),
        ({"maxDequeueCount": 4}, "advice", "set it to 5 or more"),
        ({"visibilityTimeout": None}, "advice", "after failing for 0 s"),
        ({"visibilityTimeout": "00:00:11", "maxDequeueCount": 10}, "advice", "after failing for 110 s"),
        ({"maxPollingInterval": None}, "advice", "only every 60 s"),
        ({"maxPollingInterval": "1.00:00:11"}, "advice", "only every 86411 s"),
    ],
)
def test_an_option_that_does_not_suit_is_found(options: dict[str, Any], level: str, words: str, tmp_path: Path) -> None:
    (problem,) = (item for item in found(tmp_path, **options) if item.level != "cost")
    assert problem.level == level
    assert words in problem.text


def test_options_at_their_limits_are_fine(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"maxDequeueCount": 5, "visibilityTimeout": "00:00:24", "maxPollingInterval": "00:00:10"}
    assert {item.level for item in found(tmp_path, **limits)} == {"cost"}


def test_an_app_without_storage_queues_needs_no_options_for_them(tmp_path: Path) -> None:
    assert found(tmp_path, 0, messageEncoding="none") == []


@pytest.mark.parametrize("text", ["{", "[]", '{"extensions": {"queues": {"maxPollingInterval": "soon"}}}'])
def test_a_host_json_that_cannot_be_read_is_found(text: str, tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text(text)
    (problem,) = of_host_json(tmp_path, 1)
    assert (problem.level, "it cannot be read" in problem.text) == ("wrong", True)


def test_a_folder_without_host_json_is_no_app(tmp_path: Path) -> None:
    (problem,) = of_host_json(tmp_path, 1)
    assert "this folder has none" in problem.text


def app(*queues: str, timer: bool = True) -> func.FunctionApp:
    """An app with a function on each queue."""
    made = func.FunctionApp()
    for number, name in enumerate(queues):

        async def take(message: func.QueueMessage) -> None:
            del message

        take.__name__ = f"take_{number}"
        made.queue_trigger(arg_name="message", queue_name=name, connection="AzureWebJobsStorage")(take)
    if timer:

        async def sweep(timer: func.TimerRequest) -> None:
            del timer

        made.timer_trigger(arg_name="timer", schedule="0 * * * * *")(sweep)
    return made


def test_queues_with_poison_functions_and_a_timer_are_fine() -> None:
    triggers = triggers_of(app("orders", "orders-poison"))
    assert queues_of(triggers) == ["orders", "orders-poison"]
    assert list(of_triggers(triggers, swept=True)) == []


def test_a_queue_without_a_poison_function_is_found() -> None:
    (problem,) = of_triggers(triggers_of(app("orders", "orders-poison", "payments")), swept=True)
    assert (problem.level, problem.subject) == ("wrong", "queue 'payments'")
    assert "'payments-poison'" in problem.text


def test_a_queue_that_leads_to_the_app_and_has_no_function_is_found() -> None:
    triggers = triggers_of(app("orders", "orders-poison"))
    (problem,) = of_triggers(triggers, ["orders", "payments"], swept=True)
    assert (problem.level, problem.subject) == ("wrong", "queue 'payments'")
    assert list(of_triggers(triggers_of(app("%QUEUE%", "%QUEUE%-poison")), ["orders"], swept=True)) == []


def test_an_app_that_sweeps_nothing_is_found_unless_its_strategies_owe_nothing() -> None:
    triggers = triggers_of(app(timer=False))
    (problem,) = of_triggers(triggers, swept=True)
    assert "no function has a timer" in problem.text
    assert list(of_triggers(triggers, swept=False)) == []


EVERYTHING = [{"path": "/*"}]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({}, []),
        ({"includedPaths": EVERYTHING, "excludedPaths": [{"path": '/"_etag"/?'}]}, []),
        ({"indexingMode": "none"}, ["/a/b/?"]),
        ({"includedPaths": [], "excludedPaths": EVERYTHING}, ["/a/b/?"]),
        ({"includedPaths": [{"path": "/a/b/?"}], "excludedPaths": EVERYTHING}, []),
        ({"includedPaths": [{"path": "/a/*"}], "excludedPaths": EVERYTHING}, []),
        ({"includedPaths": [{"path": "/a/c/?"}], "excludedPaths": EVERYTHING}, ["/a/b/?"]),
        ({"includedPaths": EVERYTHING, "excludedPaths": [{"path": "/a/*"}]}, ["/a/b/?"]),
        ({"includedPaths": [{"path": "/*"}, {"path": "/a/b/?"}], "excludedPaths": [{"path": "/a/*"}]}, []),
    ],
)
def test_the_closer_of_two_paths_decides_whether_one_is_indexed(policy: dict[str, Any], expected: list[str]) -> None:
    assert unindexed(policy, ["/a/b/?"]) == expected


def test_the_paths_that_are_searched_are_those_of_the_page_for_operators() -> None:
    page = (ROOT / "docs" / "howto" / "operations.md").read_text().partition("\n### Indexes\n")[2].partition("\n## ")[0]
    written = [tuple(re.findall(r"`(/[^`]+)`", line)) for line in page.splitlines() if line.startswith("| ")][2:]
    strategies: list[Strategy] = [Outbox(), Colocated(), Resequencer()]
    assert written == [*map(searched, strategies), LIBRARY]
    assert searched(VersionStream()) == searched(Colocated())
