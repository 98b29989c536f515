"""Jobs are deployed by one command, to a data lake and a workspace that answer as Azure's do."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from devtools.synapse import Place, deploy
from spark_jobs.job.configuration import Job
from tests.spark.synapse.test_definitions import references

PLACE = Place("syn-x", "dlsx", "https://cosmos-x.documents.azure.com:443/")
KINDS = {"SparkJobDefinitionReference": "sparkJobDefinitions", "PipelineReference": "pipelines"}


class Azure:
    """A data lake, and a workspace that shows a definition only at the second look, and refuses what refers to nothing."""

    def __init__(self, looks: int = 1) -> None:
        self.files: dict[str, bytes] = {}
        self.defined: dict[str, dict[str, Any]] = {}
        self.hidden: dict[str, int] = {}
        self._looks = looks
        self.pauses = 0

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        given = dict(pairwise(command))
        if command[:5] == ["az", "storage", "fs", "file", "upload"]:
            assert (given["--account-name"], given["--file-system"], given["--auth-mode"]) == ("dlsx", "jobs", "login")
            self.files[given["--path"]] = Path(given["--source"]).read_bytes()
            return 0, ""
        assert command[:2] == ["az", "rest"]
        assert given["--resource"] == "https://dev.azuresynapse.net"
        address = urlsplit(given["--url"])
        assert (address.netloc, address.query) == ("syn-x.dev.azuresynapse.net", "api-version=2020-12-01")
        if given["--method"] == "put":
            content = json.loads(given["--body"])
            wanted = {f"/{KINDS[kind]}/{name}" for kind, name in references(content) if kind in KINDS}
            if not wanted <= self.defined.keys() or any(self.hidden[item] for item in wanted):
                return 1, "ERROR: the document refers to what is not there"
            self.defined[address.path], self.hidden[address.path] = content, self._looks
            return 0, ""
        if self.hidden[address.path]:
            self.hidden[address.path] -= 1
            return 1, "ERROR: Not Found"
        return 0, json.dumps(self.defined[address.path])

    def pause(self, seconds: float) -> None:
        self.pauses += 1


def test_everything_is_deployed_in_the_order_in_which_it_refers_to_each_other() -> None:
    azure = Azure()
    deploy(PLACE, azure.run, azure.pause)
    assert [path.split("/")[1] for path in azure.defined] == ["sparkJobDefinitions"] * 2 + ["pipelines"] * 2 + [
        "triggers"
    ] * 2
    assert azure.pauses == len(azure.defined)
    for path, content in azure.defined.items():
        assert path.endswith(f"/{content['name']}")
        assert "EXAMPLE" not in json.dumps(content)


def test_a_job_finds_its_files_in_the_data_lake() -> None:
    azure = Azure()
    deploy(PLACE, azure.run, azure.pause)
    for path, content in azure.defined.items():
        if path.startswith("/sparkJobDefinitions/"):
            job = content["properties"]["jobProperties"]
            for address in (job["file"], *job["pyFiles"], *job["files"]):
                assert address.removeprefix("abfss://jobs@dlsx.dfs.core.windows.net/") in azure.files
    job_file = json.loads(azure.files["exactlyonce/shooting-range.json"])
    assert Job.read(job_file).endpoint == PLACE.endpoint
    with zipfile.ZipFile(BytesIO(azure.files["exactlyonce/spark_jobs.zip"])) as archive:
        names = archive.namelist()
    assert {"spark_jobs/audit.py", "spark_jobs/cleanup.py", "exactlyonce/records/ledger.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]


def test_it_changes_nothing_a_second_time() -> None:
    azure = Azure()
    deploy(PLACE, azure.run, azure.pause)
    once = dict(azure.defined)
    deploy(PLACE, azure.run, azure.pause)
    assert azure.defined == once


def test_a_definition_that_never_appears_ends_it() -> None:
    azure = Azure(looks=1_000)
    with pytest.raises(SystemExit, match="took exactlyonce-audit, but does not show it"):
        deploy(PLACE, azure.run, azure.pause)


def test_the_error_of_the_azure_cli_is_shown() -> None:
    with pytest.raises(SystemExit, match="It said: ERROR: no rights"):
        deploy(PLACE, lambda _: (1, "WARNING: old\nERROR: no rights\n"), lambda _: None)


def test_names_come_from_the_environment_of_azd() -> None:
    printed = 'SYNAPSE_WORKSPACE="syn-x"\nSYNAPSE_DATA_LAKE="dlsx"\nCOSMOS_ACCOUNT_ENDPOINT="https://cosmos-x.documents.azure.com:443/"\n'
    assert Place.of_azd(printed) == PLACE
    with pytest.raises(SystemExit, match="azd env set DEPLOY_SPARK true"):
        Place.of_azd('SYNAPSE_WORKSPACE=""\n')
