"""What azd and the workflow read: names that agree with the Bicep files, actions that are pinned."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from tests.infra.bicep import INFRA, ROOT, File, deployment, one

WORKFLOW = ROOT / ".github" / "workflows" / "infra.yml"


def read(path: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_the_service_is_the_one_that_the_function_app_is_tagged_as() -> None:
    project = read(ROOT / "azure.yaml")
    ((name, service),) = project["services"].items()
    assert one(deployment(), "web/site")["tags"]["azd-service-name"] == name
    assert service == {"project": ".", "language": "python", "host": "function"}
    assert (ROOT / project["infra"]["path"] / f"{project['infra']['module']}.bicep").exists()


def test_parameters_that_azd_fills_in_exist_and_none_that_is_required_is_missing() -> None:
    filled = set(json.loads((INFRA / "main.parameters.json").read_text())["parameters"])
    main = File(INFRA / "main.bicep")
    assert filled <= set(main.declared("parameter"))
    assert main.required <= filled


def test_the_workflow_compiles_and_lints_what_is_deployed_with_pinned_tools() -> None:
    workflow = read(WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert [item for item in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", item)] == []
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    for command in (
        "az bicep install --version v",
        "az bicep lint --file infra/main.bicep",
        "az bicep build --file infra/main.bicep",
    ):
        assert command in commands
