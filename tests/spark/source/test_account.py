"""The account before anything is read: reached, allowed, its containers as declared, its clock close to ours."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, ServiceResponseTimeoutError
from azure.cosmos import DatabaseProxy, PartitionKey
from azure.cosmos._global_endpoint_manager import _GlobalEndpointManager
from azure.identity import ClientSecretCredential, DefaultAzureCredential

from exactlyonce import ConfigurationError
from local_cosmos.inprocess import RunningEmulator
from spark_jobs.job.configuration import Account, Job
from spark_jobs.job.exits import AccountError, UnsafeError
from spark_jobs.source.account import connected, credential, ready, refusal, require_clock, server_now
from tests.spark.application import own
from tests.spark.source.conftest import answered

OTHER_KEY = "b3RoZXI="


@pytest.fixture
def job(database: DatabaseProxy) -> Job:
    database.create_container("exactlyonce", PartitionKey("/pk"))
    database.create_container("games", PartitionKey(["/tenant", "/gameId"], kind="MultiHash"))
    return a_job(database.id)


def a_job(database: str, **other: Any) -> Job:
    place = {
        "type": "range",
        "container": "games",
        "partition_key": ["/tenant", "/gameId"],
        "protocol": "stream",
        **other,
    }
    return Job.read({"database": database, "entities": [place]})


@pytest.fixture
def owned(job: Job, cosmos: RunningEmulator) -> Job:
    """The same, and the container says whose it is."""
    own(cosmos, job)
    return job


def test_a_check_of_regions_that_fails_in_the_background_leaves_no_trace_in_the_log(
    account: Account, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("HTTP transport has already been closed.")

    monkeypatch.setattr(_GlobalEndpointManager, "_endpoints_health_check", fail)
    with connected(account) as client:
        checking = client.client_connection._global_endpoint_manager._refresh_thread
        assert checking is not None, "The client asked for its regions in the background."
        checking.join()
    assert caplog.records == []


def test_the_time_of_a_job_is_the_servers(owned: Job, account: Account, cosmos: RunningEmulator) -> None:
    assert ready(owned, account, cosmos.now).now == pytest.approx(cosmos.now(), abs=2)


def test_a_clock_that_is_far_off_is_refused(owned: Job, account: Account, cosmos: RunningEmulator) -> None:
    with pytest.raises(UnsafeError, match="clock is 60 minutes before the account's"):
        ready(owned, account, lambda: cosmos.now() + 3600)


@pytest.mark.parametrize(("local", "words"), [(699, "5 minutes behind"), (1301, "5 minutes before")])
def test_clocks_may_differ_by_five_minutes(local: float, words: str) -> None:
    require_clock(1000, 700)
    require_clock(1000, 1300)
    with pytest.raises(UnsafeError, match=words):
        require_clock(1000, local)


def test_every_wrong_container_is_reported_at_once(job: Job, account: Account) -> None:
    wrong = a_job(job.database, partition_key=["/gameId"])
    wrong = wrong.model_copy(update={"library": "elsewhere"})
    with pytest.raises(ConfigurationError) as caught:
        ready(wrong, account)
    found = str(caught.value)
    assert "'games' of entity 'range' has the partition key /tenant, /gameId, but the job file says /gameId" in found
    assert f"there is no container 'elsewhere' of the library in database '{job.database}'" in found


def test_a_database_that_is_absent_is_named(job: Job, account: Account) -> None:
    with pytest.raises(ConfigurationError, match="no such thing as the database 'nowhere'"):
        ready(a_job("nowhere"), account)


def test_a_wrong_key_is_reported_and_not_shown(job: Job, cosmos: RunningEmulator) -> None:
    with pytest.raises(AccountError, match=r"refuses the key or identity .*401") as caught:
        ready(job, Account(cosmos.endpoint, OTHER_KEY))
    assert OTHER_KEY not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1/", "http://nowhere.invalid/"])
def test_an_account_that_is_not_there_is_named(endpoint: str) -> None:
    with pytest.raises(AccountError, match=f"No answer to the request for the account {endpoint}"):
        ready(a_job("games"), Account(endpoint, OTHER_KEY))


def test_an_endpoint_that_takes_connections_and_never_answers_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_COSMOS_HEALTH_CHECK_MAX_RETRIES", "0")  # By default 3, which takes 20 s.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        begun = time.monotonic()
        with pytest.raises(AccountError, match=f"No answer to the request for the account {endpoint}"):
            ready(a_job("games"), Account(endpoint, OTHER_KEY))
        assert time.monotonic() - begun < 60


def test_a_later_failure_is_reported_in_the_same_words(account: Account, database: DatabaseProxy) -> None:
    with pytest.raises(ConfigurationError, match="no such thing as the account"), connected(account) as client:
        client.get_database_client("absent").read()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (answered(403), "data-plane role"),
        (answered(500), "answered 500/0 .* run the job again"),
        (ClientAuthenticationError("none"), "There is no identity"),
        (ServiceResponseTimeoutError("timed out"), r"No answer .*\(ServiceResponseTimeoutError\)"),
    ],
)
def test_every_refusal_says_what_to_do(error: Any, words: str) -> None:
    found = refusal(error, "the container 'games'")
    assert isinstance(found, AccountError)
    with pytest.raises(AccountError, match=words):
        raise found


def test_an_answer_without_a_date_says_so() -> None:
    class Reply:
        def get_response_headers(self) -> dict[str, str]:
            return {"Server": "a proxy"}

    class Database:
        id = "games"

        def read(self) -> Reply:
            return Reply()

    with pytest.raises(AccountError, match="has no date"):
        server_now(Database())  # type: ignore[arg-type]


def test_the_credential_is_the_key_where_there_is_one() -> None:
    assert credential(Account("https://a.example.org/", OTHER_KEY)) == OTHER_KEY


def test_the_credential_is_an_identity_without_a_key() -> None:
    identity = credential(Account("https://a.example.org/", client_id="me"))
    assert isinstance(identity, DefaultAzureCredential)
    identity.close()


def test_the_credential_is_a_service_principal_that_is_named_whole() -> None:
    account = Account("https://a.example.org/", client_id="me", tenant_id="t", client_secret="hush")
    principal = credential(account)
    assert isinstance(principal, ClientSecretCredential)
    principal.close()
