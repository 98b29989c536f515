"""host.json: the part that this host acts upon, with the real host's names, defaults and limits.

Unknown settings are ignored, as the real host does: they configure parts which are not here.
"""

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from .errors import SettingsError

_TIME_SPAN = re.compile(r"(?:(?P<days>\d+)\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d{1,7})?)")


def parse_time_span(text: object) -> timedelta:
    """Read a .NET TimeSpan such as `00:00:30`, `00:00:00.1000000` or `1.00:00:00` (days first).

    A bare number is refused: .NET would take it for days, which nobody means.
    """
    if isinstance(text, timedelta):
        return text
    match = _TIME_SPAN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("write a time span as 'hh:mm:ss', for example '00:00:30'")
    return timedelta(**{unit: float(value) for unit, value in match.groupdict(default="0").items()})


TimeSpan = Annotated[timedelta, BeforeValidator(parse_time_span)]
Encoding = Literal["base64", "none"]


class _Section(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class QueueOptions(_Section):
    """`extensions.queues`: one set of options for all queue functions of the app.

    Attributes:
        max_polling_interval: longest pause between two polls of an empty queue.
        visibility_timeout: how long a message whose function failed stays invisible. Not the ten minutes of a message in
            work, which the real host does not let one configure.
        batch_size: messages per poll.
        max_dequeue_count: deliveries before a message counts as poison.
        new_batch_threshold: poll again when so many messages or fewer are in flight; None means `batch_size` / 2 per
            processor. At most `batch_size` + `new_batch_threshold` messages of a function are in flight.
        message_encoding: how bodies travel.
    """

    max_polling_interval: TimeSpan = Field(default=timedelta(minutes=1), ge=timedelta(milliseconds=100))
    visibility_timeout: TimeSpan = Field(default=timedelta(0), ge=timedelta(0), le=timedelta(days=7))
    batch_size: int = Field(default=16, ge=1, le=32)
    max_dequeue_count: int = Field(default=5, ge=1)
    new_batch_threshold: int | None = Field(default=None, ge=0)
    message_encoding: Annotated[Encoding, BeforeValidator(lambda value: str(value).lower())] = "base64"

    def threshold(self, processors: int = 1) -> int:
        """In-flight messages at or below which the next batch is fetched; one processor, as on the Consumption plan."""
        if self.new_batch_threshold is not None:
            return self.new_batch_threshold
        return self.batch_size // 2 * processors


class ServiceBusOptions(_Section):
    """`extensions.serviceBus`: one set of options for all Service Bus functions of the app.

    Attributes:
        auto_complete_messages: whether success completes a message; a trigger's own `auto_complete_messages` wins.
        max_concurrent_calls: messages in work of a function that has neither sessions nor batches; None means 16 per processor.
        max_concurrent_sessions: sessions in work, one message of each at a time.
        max_message_batch_size: most messages of a batch.
        min_message_batch_size: nothing but 1 is served here.
        prefetch_count: messages that are locked ahead of their turn.
        max_auto_lock_renewal_duration: how long the lock of a message in work is renewed; those of a batch never are.
        session_idle_timeout: after which time without a message a session is given up for the next; the real host takes its
            client's try timeout where it is not set.
    """

    auto_complete_messages: bool = True
    max_concurrent_calls: int | None = Field(default=None, ge=1)
    max_concurrent_sessions: int = Field(default=8, ge=1)
    max_message_batch_size: int = Field(default=1000, ge=1)
    min_message_batch_size: Literal[1] = 1
    prefetch_count: int = Field(default=0, ge=0)
    max_auto_lock_renewal_duration: TimeSpan = Field(default=timedelta(minutes=5), ge=timedelta(0))
    session_idle_timeout: TimeSpan = Field(default=timedelta(minutes=1), gt=timedelta(0))

    def calls(self, processors: int = 1) -> int:
        """Messages in work of a function that has neither sessions nor batches; one processor, as for queues."""
        return self.max_concurrent_calls or 16 * processors


class HttpOptions(_Section):
    """`extensions.http`."""

    route_prefix: str = "api"


class Extensions(_Section):
    """`extensions`: a section for each kind of binding."""

    queues: QueueOptions = QueueOptions()
    service_bus: ServiceBusOptions = ServiceBusOptions()
    http: HttpOptions = HttpOptions()


class HostJson(_Section):
    """A whole host.json."""

    version: Literal["2.0"] = "2.0"
    extensions: Extensions = Extensions()


def load_host_json(path: Path) -> HostJson:
    """Read and validate host.json.

    Raises:
        SettingsError: there is no such file, or a value is out of the real host's limits.
    """
    if not path.is_file():
        raise SettingsError(f'{path} is missing: a function app needs one, at least {{"version": "2.0"}}.')
    try:
        return HostJson.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise SettingsError(f"{path} is not valid:\n{describe(error)}") from error


def describe(error: ValidationError) -> str:
    """One line for each problem: where it is and what is wrong."""
    return "\n".join(
        f"  {'.'.join(map(str, problem['loc'])) or 'file'}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    )
