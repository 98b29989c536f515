"""A local host for Python v2 function apps, for development and tests: storage queues, Service Bus, timers and
HTTP.

It mirrors what the Azure Functions host does to an app's messages, including the odd corners that users meet, so that an
app can be tried without Azure and without a container engine. It is not the Functions host: `func start` is the
production-like path.

What differs, by intention: the invisibility of messages in work can be shortened, `Invoker` runs functions and listeners
on one event loop, bindings other than triggers of queues, Service Bus, timers and HTTP are refused at start, retry policies,
function time-outs, keys and the timers' schedule monitor are absent.

In a test:

    async with function_host(app, {"AzureWebJobsStorage": storage.connection_string}) as host:
        ...
"""

from .errors import AppError, HostError, SettingsError
from .host import FunctionHost, HostOptions, function_host
from .host_json import HostJson, QueueOptions, load_host_json
from .kill_switch import KillSwitch, Point

__version__ = "0.1.0"

__all__ = [
    "AppError",
    "FunctionHost",
    "HostError",
    "HostJson",
    "HostOptions",
    "KillSwitch",
    "Point",
    "QueueOptions",
    "SettingsError",
    "function_host",
    "load_host_json",
]
