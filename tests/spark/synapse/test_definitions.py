"""What goes to a Synapse workspace fits together: names, versions, arguments. It has never been deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.version import Version

from spark_jobs import audit, cleanup
from spark_jobs.job.configuration import Job
from tests.packaging.sources import ROOT

FOLDER = ROOT / "infra" / "synapse"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
DEFINITIONS = sorted((FOLDER / "sparkJobDefinition").glob("*.json"))
SECRETS = re.compile(r"key|secret|password|token", re.IGNORECASE)


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.json")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_definition_has_the_name_of_its_file(path: Path) -> None:
    assert read(path)["name"] == path.stem


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_job_runs_on_the_spark_that_everything_is_tested_with(path: Path) -> None:
    job = read(path)["properties"]
    (pyspark,) = (item for item in PROJECT["project"]["optional-dependencies"]["spark"] if item.startswith("pyspark"))
    assert Version(job["requiredSparkVersion"]) in Requirement(f"pyspark>={job['requiredSparkVersion']},<3.6").specifier
    assert Requirement(pyspark).specifier.contains(f"{job['requiredSparkVersion']}.9")


def test_a_job_reads_through_the_end_that_everything_is_tested_with() -> None:
    assert Job.read(read(FOLDER / "shooting-range.json")).source == "feed_ranges"
    assert not [path for path in DEFINITIONS if "azure-cosmos-spark" in path.read_text()]


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_a_job_starts_a_file_that_is_there_with_arguments_that_it_takes(path: Path) -> None:
    properties = read(path)["properties"]["jobProperties"]
    entry = FOLDER / properties["file"].rpartition("/")[2]
    assert "sys.exit(main())" in entry.read_text()
    assert [property_.rpartition("/")[2] for property_ in properties["pyFiles"]] == ["spark_jobs.zip"]
    assert [property_.rpartition("/")[2] for property_ in properties["files"]] == ["shooting-range.json"]
    options = {"audit": audit, "cleanup": cleanup}[entry.stem]
    source = Path(str(options.__file__)).read_text()
    for argument in (property_ for property_ in properties["args"] if property_.startswith("--")):
        assert f'"{argument}"' in source


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_no_secret_travels_in_arguments_or_configuration(path: Path) -> None:
    properties = read(path)["properties"]["jobProperties"]
    written = [*properties["args"], *properties["conf"], *map(str, properties["conf"].values())]
    assert [item for item in written if SECRETS.search(item)] == []


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Kind and name of everything that a definition refers to."""
    if isinstance(value, dict):
        if "referenceName" in value:
            yield value["type"], value["referenceName"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_reference_leads_to_a_definition() -> None:
    kinds = {"SparkJobDefinitionReference": "sparkJobDefinition", "PipelineReference": "pipeline"}
    found = {reference for path in FOLDER.glob("*/*.json") for reference in references(read(path))}
    assert {kind for kind, _ in found} == {*kinds, "BigDataPoolReference"}
    for kind, name in found:
        if kind in kinds:
            assert (FOLDER / kinds[kind] / f"{name}.json").is_file()


def test_cleanup_follows_an_audit_that_found_nothing() -> None:
    audits, cleanups = read(FOLDER / "pipeline" / "exactlyonce-daily.json")["properties"]["activities"]
    assert "--full" in audits["typeProperties"]["args"]
    assert cleanups["dependsOn"] == [{"activity": audits["name"], "dependencyConditions": ["Succeeded"]}]


def test_the_pool_gets_the_versions_that_everything_is_tested_with() -> None:
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "locks" / "all.txt").read_text(), re.MULTILINE))
    pool = dict(line.split("==") for line in (FOLDER / "requirements.txt").read_text().split())
    assert pool == {name: locked[name] for name in pool}
    needed = {Requirement(item).name for item in PROJECT["project"]["dependencies"]}
    assert needed | {"azure-cosmos", "azure-identity", "jinja2", "matplotlib"} == set(pool)
