"""Every effect and reply by its name: a mutant names the replies that it makes up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from exactlyonce.effects import companions, effect, entity, library
from exactlyonce.effects import entity as publish
from exactlyonce.effects import library as blobs
from exactlyonce.effects import library as books
from exactlyonce.effects import library as pages
from exactlyonce.effects import library as requests

MODULES: Final = (effect, entity, library, pages, requests, publish, companions, blobs, books)
effects: Final = SimpleNamespace(**{name: made for module in MODULES for name, made in vars(module).items()})
