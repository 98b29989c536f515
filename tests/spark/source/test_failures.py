"""A failure of Spark ends the job with the sentence and the exit code of the error behind it."""

from __future__ import annotations

import json

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from spark_jobs.job.exits import AccountError, Exit, exit_of
from spark_jobs.source.failures import refused_to_the_connector, translated


def refusal_of(status: int, substatus: int | None = None, retried: int = 429) -> str:
    """The text of a `CosmosException`, in the order of its source, within a trace of Spark."""
    headers = "{}" if substatus is None else f"{{x-ms-request-charge=1.00, x-ms-substatus={substatus}}}"
    fields = {
        "ClassName": "ForbiddenException",
        "userAgent": "azsdk-java-cosmos/4.81.0 Linux/6 JRE/17 exactlyonce",
        "statusCode": status,
        "resourceAddress": None,
        "error": '{"code":"Forbidden"}',
        "innerErrorMessage": "refused",
        "responseHeaders": headers,
        "cosmosDiagnostics": {"retryContext": {"statusAndSubStatusCodes": [{"statusCode": retried}]}},
    }
    text = json.dumps(fields, separators=(",", ":"))
    return f"Job aborted due to stage failure: Task 0 failed 4 times, most recent failure: {text}\n\tat reactor.core"


@pytest.mark.parametrize(
    ("status", "substatus", "code", "sentence"),
    [
        (401, None, Exit.ACCOUNT, "refuses the key or identity when asked for the container .* (401/0)"),
        (403, 5300, Exit.ACCOUNT, "forbids the container of the connector's request (403/5300): give the identity"),
        (404, None, Exit.CONFIGURATION, "no such thing as the container of the connector's request (404/0)"),
        (429, 3200, Exit.ACCOUNT, "answered 429/3200 when asked for the container .*: run the job again later"),
        (503, None, Exit.ACCOUNT, "answered 503/0"),
    ],
)
def test_a_refusal_of_the_connector_ends_as_one_of_our_own(
    status: int, substatus: int | None, code: Exit, sentence: str
) -> None:
    pattern = sentence.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ExactlyOnceError, match=pattern) as caught, translated():
        raise Py4JError(refusal_of(status, substatus))
    assert exit_of(caught.value) is code
    assert caught.value.__cause__ is None
    assert "userAgent" not in str(caught.value)


def test_spark_keeps_the_text_by_which_a_refusal_is_known(spark: SparkSession) -> None:
    failing = spark.range(1).select(f.raise_error(f.lit(refusal_of(404))))
    with pytest.raises(ConfigurationError, match="404/0"), translated():
        failing.collect()


def test_an_error_that_a_task_raised_comes_first() -> None:
    trace = f"{refusal_of(404)}\nspark_jobs.job.exits.AccountError: The account answered 429/0.\n"
    with pytest.raises(AccountError, match="429/0"), translated():
        raise Py4JError(trace)


@pytest.mark.parametrize(
    "text", ["java.lang.NullPointerException", '{"statusCode":403}', '"statusCode":404 of a retry']
)
def test_other_failures_stay_as_they_are(text: str) -> None:
    assert refused_to_the_connector(Py4JError(text)) is None
    with pytest.raises(Py4JError), translated():
        raise Py4JError(text)
