"""Every effect and reply by its name: a mutant names the replies that it makes up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from exactlyonce.effects import companions, effect, entity, library

MODULES: Final = (effect, entity, library, companions)
effects: Final = SimpleNamespace(**{name: made for module in MODULES for name, made in vars(module).items()})
