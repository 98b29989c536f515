import json
from pathlib import Path

import pytest

APP = Path(__file__).parents[1]


def test_containers_and_queues_of_the_app_are_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = json.loads((APP / "local.settings.json.example").read_text())["Values"]
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    from function_app import app, once  # noqa: PLC0415  # It reads the settings.

    parameters = json.loads((APP / "infra" / "main.parameters.json").read_text())["parameters"]
    deployed = {name: item.get("value") for name, item in parameters.items()}
    triggers = [function.get_trigger().get_dict_repr() for function in app.get_functions()]
    read = {trigger["queueName"] for trigger in triggers if "queueName" in trigger}
    poison = {f"{queue}-poison" for queue in deployed["triggeredQueues"]}
    assert once.needs.database == deployed["databaseName"]
    assert {name: list(paths) for name, paths in once.needs.containers.items()} == {
        item["name"]: item["paths"] for item in deployed["containers"]
    }
    assert {*deployed["triggeredQueues"], *poison} == read
    assert set(deployed["outputQueues"]) == {*once.needs.queues} - read
