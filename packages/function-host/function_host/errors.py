"""Why the host refuses to start. Each message names the place and says what to do.

HostError
├── AppError        the function app cannot be served: no app, a binding this host does not know, a wrong signature
└── SettingsError   host.json, local.settings.json or an app setting is missing or wrong
"""


class HostError(Exception):
    """The app cannot be hosted."""


class AppError(HostError):
    """Change the function app, or run it under `func start`."""


class SettingsError(HostError):
    """Change host.json, local.settings.json or the environment."""
