"""The application, on Azure Functions or in any other process."""

from exactlyonce.hosting.accounts.port import Needs
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.hosting.config.connections import ServiceBusConnection, StorageConnection
from exactlyonce.hosting.config.settings import Settings
from exactlyonce.hosting.deliveries.triggers import PlainJson
from exactlyonce.hosting.upkeep.sweeper import Swept

__all__ = ["ExactlyOnce", "Needs", "PlainJson", "ServiceBusConnection", "Settings", "StorageConnection", "Swept"]
