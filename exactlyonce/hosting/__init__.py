"""Putting an application together on Azure Functions, or in any process of one's own."""

from exactlyonce.hosting.adapters import PlainJson
from exactlyonce.hosting.composition import ExactlyOnce
from exactlyonce.hosting.connections import ServiceBusConnection, StorageConnection
from exactlyonce.hosting.settings import Settings
from exactlyonce.hosting.sweeping import Swept

__all__ = ["ExactlyOnce", "PlainJson", "ServiceBusConnection", "Settings", "StorageConnection", "Swept"]
