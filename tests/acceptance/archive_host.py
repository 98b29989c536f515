"""The function host in an environment that has nothing but what an app asks for.

    python -I archive_host.py HOST PACKAGES …

PACKAGES is where the host's own dependencies are, HOST where it is; what follows are its arguments. Before it imports the
app, the host takes itself and what it brought from the app's sight: the app can import its own folder, the environment it was
given, and the standard library.
"""

from __future__ import annotations

import sys

host, packages, *arguments = sys.argv[1:]
brought = (host, packages)
sys.path += brought  # Last, so that what the environment has comes from there.

from function_host import cli  # noqa: E402

sys.path[:] = [place for place in sys.path if place not in brought]
for name, module in list(sys.modules.items()):
    if (getattr(module, "__file__", None) or "").startswith(brought):
        del sys.modules[name]

sys.exit(cli.main(arguments))
