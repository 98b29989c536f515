"""The job file of the sample says what the sample declares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

from exactlyonce import Destination
from spark_jobs.describe import entities_of
from spark_jobs.job.configuration import Job, load
from tests.packaging.sources import ROOT

ENVIRONMENT = {
    "COSMOS__accountEndpoint": "https://a.example.org/",
    "COSMOS__database": "shooting-range",
    "AzureWebJobsStorage": "UseDevelopmentStorage=true",
}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The sample's `function_app`."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    sys.modules.pop("function_app", None)
    yield import_module("function_app")
    sys.modules.pop("function_app", None)


@pytest.fixture
def job() -> Job:
    """The job file that is shipped for Synapse."""
    return load(
        ROOT / "infra" / "synapse" / "shooting-range.json", {"COSMOS__accountEndpoint": "https://a.example.org/"}
    )[0]


def test_its_entities_are_those_that_the_application_declares(app: ModuleType, job: Job) -> None:
    declared = Job.of(entities_of(app), database="shooting-range")
    assert {place.type: place for place in job.entities} == {place.type: place for place in declared.entities}


def test_its_consumers_read_destinations_that_the_application_declares(app: ModuleType, job: Job) -> None:
    destinations = {var.name for var in vars(app).values() if isinstance(var, Destination)}
    assert job.consumers
    assert job.consumers.keys() <= destinations
