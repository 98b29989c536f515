"""Settings with blanks, line ends and marks around them: all of them lose these by one rule, or are refused by their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from exactlyonce import ConfigurationError
from exactlyonce.environment import bare
from exactlyonce.hosting import Settings
from exactlyonce.hosting.config.settings import function_timeout, load_all
from spark_jobs.cleaner.blobs import BlobPlace
from spark_jobs.job.configuration import Account, Job

KEY: Final = "c2VjcmV0LWtleQ=="
BASE: Final = {"COSMOS__accountEndpoint": "https://name.documents.azure.com:443/", "COSMOS__database": "shop"}
STRING: Final = f"AccountName=acc;AccountKey={KEY}"
BUS: Final = f"Endpoint=sb://name.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey={KEY}"
QUEUES, BLOBS = "https://acc.queue.core.windows.net", "https://acc.blob.core.windows.net"
ON_BUS: Final = {"EXACTLYONCE__transport": "servicebus", "ServiceBus": BUS}
OF_SETTINGS: Final = {
    **BASE,
    "COSMOS__accountKey": KEY,
    "COSMOS__clientId": "c-1",
    "EXACTLYONCE__container": "library",
    "EXACTLYONCE__application": "shop",
    "EXACTLYONCE__retention": "P30D",
    "EXACTLYONCE__connection": "Orders",
    "EXACTLYONCE__transport": "storage",
    "EXACTLYONCE__serviceBusConnection": "Bus",
    "EXACTLYONCE__maxMessageBytes": "262144",
    "EXACTLYONCE__destinations": '{"adds": "adds-queue"}',
    "EXACTLYONCE__blobContainer": "blobs",
    "EXACTLYONCE__deliveryLimit": "P2D",
    "EXACTLYONCE__deliveryTimeout": "50",
    "EXACTLYONCE__provedWithin": "PT9M",
    "EXACTLYONCE__expiry": "store",
    "EXACTLYONCE__memory": "1000",
    "EXACTLYONCE__sweepAfter": "70",
    "EXACTLYONCE__exceptionText": "on",
}
"""Every setting of `Settings`, with another value than its default."""
ENVIRONMENTS: Final = (
    {**OF_SETTINGS, "Orders": STRING},
    {**BASE, "AzureWebJobsStorage": "UseDevelopmentStorage=true"},
    {
        **BASE,
        "EXACTLYONCE__blobContainer": "blobs",
        "AzureWebJobsStorage__queueServiceUri": QUEUES,
        "AzureWebJobsStorage__blobServiceUri": BLOBS,
        "AzureWebJobsStorage__clientId": "c-1",
    },
    {**BASE, "AzureWebJobsStorage__accountName": "acc", "AzureWebJobsStorage__clientId": "c-1"},
    {**BASE, **ON_BUS},
    {
        **BASE,
        "EXACTLYONCE__transport": "servicebus",
        "ServiceBus__fullyQualifiedNamespace": "name.servicebus.windows.net",
    },
    {**BASE, **ON_BUS, "AzureFunctionsJobHost__functionTimeout": "00:10:00"},
)
"""Each setting of a connection stands in one of them."""
OF_JOBS: Final = (
    {"EXACTLYONCE__blobContainer": "blobs", "EXACTLYONCE__connection": "Orders", "Orders": STRING},
    {
        "EXACTLYONCE__blobContainer": "blobs",
        "AzureWebJobsStorage__blobServiceUri": BLOBS,
        "AzureWebJobsStorage__clientId": "c-1",
    },
    {"EXACTLYONCE__blobContainer": "blobs", "AzureWebJobsStorage__accountName": "acc"},
    {"COSMOS__accountKey": KEY, "COSMOS__clientId": "c-1"},
    {"AZURE_CLIENT_SECRET": "secret", "AZURE_CLIENT_ID": "c-2", "AZURE_TENANT_ID": "t-1"},
)
INVISIBLE: Final = " \t\n\r\v\f\x85\u00a0\u2028\u3000\u200b\ufeff"
ends = st.text(INVISIBLE, max_size=3)


def cases(environments: tuple[dict[str, str], ...]) -> st.SearchStrategy[tuple[dict[str, str], str]]:
    """An environment, and one of its settings."""
    return st.sampled_from([(environment, name) for environment in environments for name in environment])


def loaded(environment: dict[str, str]) -> Any:
    """What an application reads of an environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith(("COSMOS__", "EXACTLYONCE__", "Azure")):
                patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        settings, connections = load_all(["adds"])
        return settings, connections, function_timeout()


def read_by_jobs(environment: dict[str, str]) -> Any:
    """What the jobs read of an environment."""
    place = {"type": "adds", "container": "adds", "partition_key": ["/id"], "protocol": "outbox"}
    job = Job.model_validate({"endpoint": BASE["COSMOS__accountEndpoint"], "database": "shop", "entities": [place]})
    return BlobPlace.of(environment), Account.of(job, environment)


READERS: Final[tuple[tuple[Callable[[dict[str, str]], Any], tuple[dict[str, str], ...]], ...]] = (
    (loaded, ENVIRONMENTS),
    (read_by_jobs, OF_JOBS),
)


def test_every_setting_of_the_library_is_tried() -> None:
    assert {str(field.validation_alias) for field in Settings.model_fields.values()} == {*OF_SETTINGS}


@given(st.data(), ends, ends)
def test_a_setting_loses_what_nobody_sees_at_its_ends(data: st.DataObject, before: str, after: str) -> None:
    read, environments = data.draw(st.sampled_from(READERS))
    environment, name = data.draw(cases(environments))
    assert read({**environment, name: f"{before}{environment[name]}{after}"}) == read(environment)


@given(st.data(), st.sampled_from(INVISIBLE.replace(" ", "")))
def test_a_setting_with_an_invisible_character_inside_is_refused_by_its_name(
    data: st.DataObject, character: str
) -> None:
    read, environments = data.draw(st.sampled_from(READERS))
    environment, name = data.draw(cases(environments))
    assume(name not in ("EXACTLYONCE__destinations", "AzureFunctionsJobHost__functionTimeout"))
    value, middle = environment[name], len(environment[name]) // 2
    assume(middle)
    wrong = f"{value[:middle]}{character}{value[middle:]}"
    with pytest.raises(ConfigurationError, match=name) as caught:
        read({**environment, name: wrong})
    assert wrong not in str(caught.value)
    assert KEY[-8:] not in str(caught.value)


@given(st.data(), st.sampled_from("'\""))
def test_a_setting_in_quotation_marks_is_refused_by_its_name(data: st.DataObject, mark: str) -> None:
    read, environments = data.draw(st.sampled_from(READERS))
    environment, name = data.draw(cases(environments))
    assume(name != "AzureFunctionsJobHost__functionTimeout")
    with pytest.raises(ConfigurationError, match=name):
        read({**environment, name: f"{mark}{environment[name]}{mark}"})


@pytest.mark.parametrize("text", ["", " ", "\r\n", "\ufeff"])
def test_a_setting_of_blanks_is_as_empty_as_an_empty_one(text: str) -> None:
    assert bare(text) == ""
    with pytest.raises(ConfigurationError, match="EXACTLYONCE__application"):
        loaded({**ENVIRONMENTS[1], "EXACTLYONCE__application": text})


@pytest.mark.parametrize("name", ["EXACTLYONCE__connection", "EXACTLYONCE__serviceBusConnection"])
def test_a_connection_string_in_place_of_a_connections_name_is_not_quoted(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        loaded({**ENVIRONMENTS[1], name: STRING})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("account", ["a.b/c", "Acc", "https://acc", "ac", "a c"])
def test_an_account_that_cannot_be_is_refused_by_the_name_of_its_setting(account: str) -> None:
    with pytest.raises(ConfigurationError, match="AzureWebJobsStorage__accountName"):
        loaded({**BASE, "AzureWebJobsStorage__accountName": account})
