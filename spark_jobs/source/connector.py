"""The adapter to azure-cosmos-spark, Microsoft's connector.

**No release of the connector was ever run in development or CI**: the jar cannot be had there. In the tests a double takes its
place, a small data source in Java, with the options of the connector's documentation and source (a table in the tests), and
with the same calls of the Java SDK. So this module is run. The connector's own code, direct mode, identities of Entra ID, and
more than one executor are not. Therefore a job uses the connector only if the file has `"source": "connector"`. Run the
connector once against an account of yours before you rely on it, and compare the findings with those of `"source":
"feed_ranges"`.

Errors reach the job as Java traces, in which `tasks.translated` finds the account's refusal. An account that throttles for
ever keeps the connector waiting for ever: give the job a time limit.

The connector does not report the result of a delete: documents that are gone (404) or have changed (412) are skipped in
silence. So every outcome is `unknown`, and jobs count by reading again.

On Synapse and Fabric no managed identity is supported (says the documentation): there, put a service principal's
AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET into the environment of the driver.

Source: "Configuration Reference" of azure-cosmos-spark, and the names that its CosmosConfig.scala accepts, as of 2026.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import reduce
from typing import Any, Final
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from exactlyonce.environment import setting
from exactlyonce.errors import ConfigurationError
from spark_jobs.job.configuration import Account
from spark_jobs.source.port import RAW, Made, Outcome, Query, Spent, container_of_all, placed, require_deletable
from spark_jobs.spark.frames import by_row, held, kept, making

FORMAT: Final = "cosmos.oltp"
_CLASS: Final = "com.azure.cosmos.spark.CosmosItemsDataSource"
_BODY: Final = "_rawBody"
"""The column in which the connector gives, and takes, a document as JSON text."""

_SECRET: Final = ("spark.cosmos.accountKey", "spark.cosmos.auth.aad.clientSecret")
_REDACTED: Final = "(?i)url|secret|password|token|key"


class Options(dict[str, str]):
    """Options of the connector; their text leaves out secrets."""

    def __repr__(self) -> str:
        return repr({name: "***" if name in _SECRET else value for name, value in self.items()})

    __str__ = __repr__


def options(
    account: Account,
    database: str,
    container: str,
    environment: Mapping[str, str] = os.environ,
    rate: float | None = None,
    *,
    executors: int = 1,
) -> Options:
    """The options of every use of the connector.

    Args:
        environment: `AZURE_SUBSCRIPTION_ID` and `AZURE_RESOURCE_GROUP` of the account, if they are known.
        rate: most RU per second over all executors; None for no limit. The connector gives each an equal part.
        executors: their number.

    Raises:
        ConfigurationError: there is no identity.
    """
    found = Options(
        {
            "spark.cosmos.accountEndpoint": account.endpoint,
            "spark.cosmos.database": database,
            "spark.cosmos.container": container,
            "spark.cosmos.applicationName": "exactlyonce",
            **_identity(account, environment),
        }
    )
    if rate is not None:
        found |= {
            "spark.cosmos.throughputControl.enabled": "true",
            "spark.cosmos.throughputControl.name": "exactlyonce",
            # The part of an executor is a whole number, and refused if it is 0.
            "spark.cosmos.throughputControl.targetThroughput": str(max(executors, int(rate))),
            # No container of its own, in which several jobs could share one limit.
            "spark.cosmos.throughputControl.globalControl.useDedicatedContainer": "false",
        }
    return found


def reading(query: Query) -> Options:
    """The options to read a query."""
    return Options(
        {
            "spark.cosmos.read.customQuery": query.text,
            "spark.cosmos.read.inferSchema.enabled": "false",
            "spark.cosmos.read.forceEventualConsistency": "true",
            # One task for each physical partition. Other strategies first ask the change feed for sizes, or cut partitions
            # into ranges, in which Java SDK 4.81 repeats rows after a split.
            "spark.cosmos.read.partitioning.strategy": "Restrictive",
        }
    )


def deleting() -> Options:
    """The options to delete unchanged documents."""
    return Options(
        {
            "spark.cosmos.write.strategy": "ItemDeleteIfNotModified",
            "spark.cosmos.write.bulk.enabled": "true",
        }
    )


def _identity(account: Account, environment: Mapping[str, str]) -> dict[str, str]:
    if account.key:
        return {"spark.cosmos.auth.type": "MasterKey", "spark.cosmos.accountKey": account.key}
    if not account.tenant_id:
        raise ConfigurationError(
            "The connector needs an identity: set AZURE_TENANT_ID for a managed identity, and AZURE_CLIENT_ID and "
            'AZURE_CLIENT_SECRET as well for a service principal, which Synapse needs; or set "source": "feed_ranges" in the '
            "job file."
        )
    found = {
        "spark.cosmos.auth.type": "ServicePrincipal" if account.client_secret else "ManagedIdentity",
        "spark.cosmos.account.tenantId": account.tenant_id,
        "spark.cosmos.auth.aad.clientId": account.client_id,
        "spark.cosmos.auth.aad.clientSecret": account.client_secret,
        # For requests to the management plane; some versions ask for them of every service principal.
        "spark.cosmos.account.subscriptionId": setting(environment, "AZURE_SUBSCRIPTION_ID"),
        "spark.cosmos.account.resourceGroupName": setting(environment, "AZURE_RESOURCE_GROUP"),
    }
    return {name: value for name, value in found.items() if value}


def jar_of(spark: SparkSession, name: str = _CLASS) -> str | None:
    """The file name of the jar of a class, with the version; None if the class is not on the driver's class path."""
    jvm: Any = spark._jvm  # noqa: SLF001  # PySpark has no public way to the JVM.
    try:
        found = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
        path: str = found.getProtectionDomain().getCodeSource().getLocation().getPath()
    except Py4JError:
        return None
    return path.rpartition("/")[2]


class Connector:
    """A `Source` by the connector. No release was run here: see this module.

    Args:
        partition_keys: for each container the paths of its partition key.
        environment: see `options`.
        rate: most RU per second; None for no limit.
        jar: file name of the jar, with the connector's version.

    Raises:
        ConfigurationError: there is no identity.
    """

    repeats = True
    """The double of the tests gives every row once when a partition splits. What the connector does was not seen."""

    def __init__(
        self,
        spark: SparkSession,
        account: Account,
        database: str,
        partition_keys: Mapping[str, tuple[str, ...]],
        *,
        environment: Mapping[str, str] = os.environ,
        rate: float | None = None,
        jar: str = "",
    ) -> None:
        self.name = f"connector, {jar}"
        self.spent = Spent(units=None)
        self._spark = spark
        self._paths = partition_keys
        executors = int(spark.conf.get("spark.executor.instances", "1") or 1)
        self._options = {
            name: options(account, database, name, environment, rate, executors=executors) for name in partition_keys
        }
        # Plans show options; Spark's own pattern hides secrets and tokens, but no "accountKey".
        spark.conf.set("spark.sql.redaction.options.regex", _REDACTED)

    def read(self, *queries: Query) -> Made:
        """Read the rows of queries; see `Source.read`."""
        own = self._of(container_of_all(queries))
        schema = StructType([StructField(_BODY, StringType())])
        reader = self._spark.read.schema(schema).format(FORMAT)
        rows = reduce(DataFrame.unionByName, (reader.options(**own | reading(query)).load() for query in queries))
        # With a name: Spark would take the rows of an equal read that it still holds, and send no request.
        named = rows.select(f.col(_BODY).alias(RAW.fieldNames()[0]), f.lit(uuid4().hex).alias("read"))
        return self._made(held(named), *RAW.fieldNames())

    def delete(self, container: str, rows: DataFrame) -> Made:
        """Delete unchanged documents; see `Source.delete`. All outcomes are unknown."""
        require_deletable(rows)
        given = self._of(container) | deleting()
        going = kept(rows)  # Its lineage may read the documents that are deleted here.
        bodies(going, self._paths[container]).write.format(FORMAT).options(**given).mode("append").save()
        return self._made(going.withColumn("outcome", f.lit(Outcome.UNKNOWN.value)), "*")

    def _made(self, rows: DataFrame, *columns: str) -> Made:
        with making(rows):
            number = rows.count()
        self.spent.add(Spent(number, 0, None))
        return Made(rows.select(*columns), number, Spent(number, 0, None), rows)

    def _of(self, container: str) -> Options:
        found = self._options.get(container)
        if found is None:
            raise ConfigurationError(f"The job file names no container {container!r}.")
        return found


def bodies(rows: DataFrame, paths: tuple[str, ...]) -> DataFrame:
    """Rows to delete in the connector's form: JSON with id, ETag and the partition key's values.

    Args:
        rows: with the columns `partition`, `id` and `etag`.
        paths: of the partition key, such as `("/tenant", "/customer/id")`.
    """

    def body(partition: str, id: str, etag: str) -> str:
        return json.dumps({"id": id, "_etag": etag, **placed(paths, json.loads(partition))})

    return rows.select(by_row(StringType())(body)("partition", "id", "etag").alias(_BODY))
