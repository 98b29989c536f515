"""The job file, which names containers and limits, and the account, from the environment.

The file holds no secret. Jobs use Microsoft Entra ID, unless the environment has an account key, for the local Cosmos.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from exactlyonce import Colocated, Entity, Outbox, Resequencer, VersionStream
from exactlyonce.environment import setting
from exactlyonce.errors import ConfigurationError
from exactlyonce.values.lifetimes import Duration, Positive
from spark_jobs.job import limits

_MAX_PATHS: Final = 3

Protocol = Literal["outbox", "colocated", "stream", "resequencer"]
"""The strategies, by the name that a ledger has."""

_PROTOCOLS: Final[Mapping[type, Protocol]] = {
    Outbox: "outbox",
    Colocated: "colocated",
    VersionStream: "stream",
    Resequencer: "resequencer",
}

Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^/\\?#\t\r\n]*[^/\\?#\s]$")]
"""Name of a database or container."""
KeyPath = Annotated[str, Field(pattern=r"^/.+$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EntityPlace(_Model):
    """The container of an entity type.

    Attributes:
        type: name of the entity type.
        partition_key: paths of its partition key, from the top.
        protocol: protocol of the entities.
    """

    type: str = Field(min_length=1)
    container: Name
    partition_key: tuple[KeyPath, ...] = Field(("/id",), min_length=1, max_length=_MAX_PATHS)
    protocol: Protocol


class Job(_Model):
    """The job file. Durations are ISO 8601 or seconds. The retention is the application's.

    Attributes:
        database: name of the database; `COSMOS__database` has precedence.
        endpoint: of the account; `COSMOS__accountEndpoint` has precedence.
        library: name of the library's container.
        consumers: for each destination that an entity type of this job consumes, that type.
        horizon: age below which clean-up leaves staged messages alone.
        owed_after, lost_after, gap_after: age from which an output owed, an output unknown to its consumer, and a gap
            are findings.
        awaited_after: age from which a call whose reply did not come is a finding: longer than any `key_lifetime` of an `Api`.
        garbage_after: age from which staged messages that belong to no commit are a finding: clean-up should have deleted them.
        left_after: age from which a request that its caller opened and did not close is a finding: longer than the retention,
            after which clean-up deletes those that were not carried out.
        grace: age below which rules do not judge, since the containers are read one after the other.
        live_since: when the application went live; None if that is not known.
        rate: most RU per second that the job may spend; None for no limit.
        source: "feed_ranges" for the Python SDK, "connector" for azure-cosmos-spark.
        rules: module with rules of the application's own, see `spark_jobs.rules`; None for none.
    """

    database: Name
    endpoint: str | None = Field(None, pattern=r"^https?://[^/\s;=?#@]+/?$")
    entities: tuple[EntityPlace, ...] = Field(min_length=1)
    library: Name = Field("exactlyonce", validate_default=True)
    consumers: dict[str, str] = Field(default_factory=dict)
    horizon: Positive = limits.HORIZON
    owed_after: Positive = limits.OWED_AFTER
    lost_after: Positive = limits.LOST_AFTER
    gap_after: Positive = limits.GAP_AFTER
    awaited_after: Positive = limits.AWAITED_AFTER
    garbage_after: Positive = limits.GARBAGE_AFTER
    left_after: Positive = limits.LEFT_AFTER
    grace: Duration = limits.GRACE
    live_since: AwareDatetime | None = None
    rate: float | None = Field(None, gt=0)
    source: Literal["feed_ranges", "connector"] = "feed_ranges"
    rules: str | None = Field(None, min_length=1)

    @classmethod
    def of(cls, entities: Iterable[Entity[Any]], *, database: str, **rest: Any) -> Self:
        """The job file of an application.

        Raises:
            ConfigurationError: names all problems.
        """
        places = [
            {
                "type": entity.name,
                "container": entity.container,
                "partition_key": entity.paths,
                "protocol": _protocol(entity),
            }
            for entity in entities
        ]
        return cls.read({"database": database, "entities": places, **rest})

    @classmethod
    def read(cls, content: object) -> Self:
        """The job of a job file's content.

        Raises:
            ConfigurationError: names all problems.
        """
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise invalid("The job is not configured as it has to be", _problems_of(error)) from None

    @property
    def places(self) -> list[EntityPlace]:
        """One place for each container that holds entities: that of the first type in it."""
        return [*{entity.container: entity for entity in reversed(self.entities)}.values()]

    def text(self) -> str:
        """The content of a job file."""
        return self.model_dump_json(indent=2, exclude_unset=True) + "\n"

    # Each runs where the fields it needs are well-formed, so that all problems are reported at once.
    @field_validator("entities")
    @classmethod
    def _distinct(cls, places: tuple[EntityPlace, ...]) -> tuple[EntityPlace, ...]:
        _require_none(_contradictions(places))
        return places

    @field_validator("library")
    @classmethod
    def _apart(cls, library: str, others: ValidationInfo) -> str:
        inside = [place.type for place in others.data.get("entities", ()) if place.container == library]
        _require_none(f"is the container of entity {type!r}, too: they need one each" for type in inside)
        return library

    @field_validator("consumers")
    @classmethod
    def _known(cls, consumers: dict[str, str], others: ValidationInfo) -> dict[str, str]:
        if "entities" in others.data:
            _require_none(_unknown_consumers(consumers, [place.type for place in others.data["entities"]]))
        return consumers


@dataclass(frozen=True, slots=True)
class Account:
    """Address and identity for the account. Secrets are never shown, and reach the executors in the closures of tasks.

    Attributes:
        endpoint: its address.
        key: the account key, for the local Cosmos; None to use an identity.
        client_id: of a user-assigned managed identity or a service principal; None for the default identity.
        tenant_id: of the identity.
        client_secret: of a service principal, for pools without managed identities; None for another identity.
    """

    endpoint: str
    key: str | None = field(default=None, repr=False)
    client_id: str | None = None
    tenant_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, job: Job, environment: Mapping[str, str] = os.environ) -> Account:
        """The account of a job: its address from the job, the identity from the environment.

        Raises:
            ConfigurationError: there is no address, or the identity is incomplete.
        """
        if problems := [*_account_problems(job.endpoint, environment)]:
            raise invalid("The account is not configured as it has to be", problems)
        return cls(
            job.endpoint or "",
            setting(environment, "COSMOS__accountKey"),
            setting(environment, "COSMOS__clientId") or setting(environment, "AZURE_CLIENT_ID"),
            setting(environment, "AZURE_TENANT_ID"),
            setting(environment, "AZURE_CLIENT_SECRET"),
        )


def load(path: Path, environment: Mapping[str, str] = os.environ) -> tuple[Job, Account]:
    """Read a job file and the account's settings.

    Args:
        environment: `COSMOS__accountEndpoint` and `COSMOS__database` have precedence over the file. The identity is here only:
            `COSMOS__accountKey` for the local Cosmos; else a managed identity (`COSMOS__clientId`), or a service principal
            (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`).

    Raises:
        ConfigurationError: names the file and all problems.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise ConfigurationError(f"The job file {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # No JSON, or no UTF-8.
        raise ConfigurationError(f"The job file {path} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"The job file {path} has to hold a JSON object.")
    for name, variable in (("endpoint", "COSMOS__accountEndpoint"), ("database", "COSMOS__database")):
        if value := setting(environment, variable):
            content[name] = value
    problems = [*_account_problems(content.get("endpoint"), environment)]
    try:
        job = Job.model_validate(content)
    except ValidationError as error:
        problems += _problems_of(error)
    if problems:
        raise invalid(f"The job file {path}, or the environment, is not as it has to be", problems)
    return job, Account.of(job, environment)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Refuses a repeated name: a value would be lost in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it names {next(name for name in names if names.count(name) > 1)!r} twice in one object")
    return found


def invalid(what: str, problems: Iterable[str]) -> ConfigurationError:
    """An error that names all problems, a line for each."""
    return ConfigurationError(f"{what}:\n" + "\n".join(f"- {problem}" for problem in problems))


def _require_none(problems: Iterable[str]) -> None:
    """Raise `ValueError` with a line for each problem, if there is one."""
    if lines := "\n".join(problems):
        raise ValueError(lines)


def _problems_of(error: ValidationError) -> Iterator[str]:
    """The problems that pydantic found. Values are left out: one may be a key in the wrong place."""
    for item in error.errors(include_url=False, include_input=False):
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]).lstrip(".")
        match item["type"]:
            case "extra_forbidden":
                model = EntityPlace if len(item["loc"]) > 1 else Job
                yield f"{where} is not known here; known are: {', '.join(model.model_fields)}"
            case "missing":
                yield f"{where} is missing"
            case "value_error":
                yield from (f"{where} {line}" for line in str(item["ctx"]["error"]).splitlines())
            case _:
                yield f"{where}: {item['msg']}"


def _contradictions(places: tuple[EntityPlace, ...]) -> Iterator[str]:
    names = Counter(place.type for place in places)
    yield from (f"name the type {name!r} twice" for name, times in names.items() if times > 1)
    first: dict[str, EntityPlace] = {}
    for place in places:
        other = first.setdefault(place.container, place)
        if other.partition_key != place.partition_key:
            yield (
                f"say two things of the container {place.container!r}: the partition key {', '.join(other.partition_key)} "
                f"(entity {other.type!r}) and {', '.join(place.partition_key)} (entity {place.type!r})"
            )


def _unknown_consumers(consumers: Mapping[str, str], types: list[str]) -> Iterator[str]:
    for destination, type in consumers.items():
        if type not in types:
            yield f"says that {type!r} reads {destination!r}, which is none of the entities: {', '.join(types)}"


def _protocol(entity: Entity[Any]) -> Protocol:
    protocol = _PROTOCOLS.get(type(entity.strategy))
    if protocol is None:
        raise ConfigurationError(
            f"Entity {entity.name!r} runs on {type(entity.strategy).__name__}, which the jobs do not know: upgrade them."
        )
    return protocol


def _account_problems(endpoint: object, environment: Mapping[str, str]) -> Iterator[str]:
    """Problems of address and identity. An account key is Base64; for another the SDK raises an error that names no setting."""
    if endpoint is None:
        yield "there is no endpoint: set COSMOS__accountEndpoint, or `endpoint` in the file"
    try:
        b64decode(setting(environment, "COSMOS__accountKey") or "", validate=True)
    except ValueError:
        yield "COSMOS__accountKey is no account key: copy it whole, or unset it to use an identity"
    if setting(environment, "AZURE_CLIENT_SECRET"):
        named = (
            ("AZURE_TENANT_ID",) if setting(environment, "COSMOS__clientId") else ("AZURE_CLIENT_ID", "AZURE_TENANT_ID")
        )
        if missing := [name for name in named if not setting(environment, name)]:
            yield f"AZURE_CLIENT_SECRET is set, but {' and '.join(missing)} is not: a service principal needs all of them"
