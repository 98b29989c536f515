"""An adapter performs each effect by the method that is marked with it, and refuses the others."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any, assert_type

import pytest

from exactlyonce.effects import companions, entity, library
from exactlyonce.effects.effect import Adapter, AsyncAdapter, Awaited, Busy, Effect, NoAnswer, Unknown, performs
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Saved, SaveEntity
from exactlyonce.effects.library import DeleteStaged, HasPages, Stage, Written
from exactlyonce.stores.blobs.azure import AzureBlobs
from exactlyonce.stores.blobs.port import MemoryBlobs
from exactlyonce.stores.cosmos.store import CosmosStore
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.stores.port import AsyncStore, Store
from exactlyonce.testing import contracts
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

ENTITY = EntityRef("account", ("a",), "a")
LOADED = Loaded(None, None, 0, "0:-1#1")
SAVE = SaveEntity(ENTITY, Json.of({}), None)
OF_BLOBS = {library.WriteOnce, library.DeleteBlobs}
NOT_OF_STORES = {entity.Publish, library.OpenNumbers, library.FindPaid, library.CloseNumbers}


class Small(Adapter):
    """Performs two effects."""

    def __init__(self) -> None:
        self.busy = False

    @performs(LoadEntity)
    def load(self, effect: LoadEntity) -> Loaded | Busy:
        return Busy(1.5) if self.busy else LOADED

    @performs(SaveEntity)
    def save(self, effect: SaveEntity) -> Saved | Conflict:
        return Saved('"1"', None)


class Refusing(Small):
    """Overrides a method without marking it again, and performs another effect."""

    def save(self, effect: SaveEntity) -> Conflict:
        return Conflict(None)

    @performs(HasPages)
    def any(self, effect: HasPages) -> bool:
        return True


class SmallAsync(AsyncAdapter):
    """Performs one effect, awaited."""

    @performs(LoadEntity)
    async def load(self, effect: LoadEntity) -> Loaded:
        return LOADED


def kinds(*modules: ModuleType) -> set[type[Effect[Any]]]:
    """The effects that modules define."""
    return {
        var
        for module in modules
        for var in vars(module).values()
        if inspect.isclass(var) and issubclass(var, Effect) and var.__module__ == module.__name__
    }


def test_an_effect_gets_the_reply_of_the_method_that_is_marked_with_it() -> None:
    store = Small()
    assert store.perform(LoadEntity(ENTITY)) is LOADED
    assert store.perform(SAVE) == Saved('"1"', None)
    store.busy = True
    assert store.perform(LoadEntity(ENTITY)) == Busy(1.5)


async def test_an_adapter_for_the_async_driver_is_awaited() -> None:
    assert await SmallAsync().perform(LoadEntity(ENTITY)) is LOADED
    assert await Awaited(Small()).perform(LoadEntity(ENTITY)) is LOADED


def test_a_subclass_performs_what_its_base_does_by_the_methods_it_overrides() -> None:
    store = Refusing()
    assert store.perform(LoadEntity(ENTITY)) is LOADED
    assert store.perform(SAVE) == Conflict(None)
    assert store.perform(HasPages(ENTITY)) is True
    assert Small().perform(SAVE) == Saved('"1"', None)


@pytest.mark.parametrize("adapter", [Small(), SmallAsync()], ids=lambda item: type(item).__name__)
def test_an_effect_without_a_method_is_refused_by_name(adapter: Small | SmallAsync) -> None:
    with pytest.raises(
        TypeError, match=rf"{type(adapter).__name__} performs no DeleteStaged\. .*@performs\(DeleteStaged\)"
    ):
        adapter.perform(DeleteStaged(ENTITY, ("tx",)))


@pytest.mark.parametrize("store", [MemoryStore, CosmosStore])
def test_a_store_performs_every_effect_on_documents(store: type[MemoryStore | CosmosStore]) -> None:
    assert set(store.operations) == kinds(entity, library, companions) - OF_BLOBS - NOT_OF_STORES


@pytest.mark.parametrize("store", [MemoryBlobs, AzureBlobs])
def test_a_blob_store_performs_every_effect_on_blobs(store: type[MemoryBlobs | AzureBlobs]) -> None:
    assert set(store.operations) == OF_BLOBS


def test_the_contract_suites_demand_every_effect() -> None:
    (folder,) = contracts.__path__
    suites = "".join(path.read_text(encoding="utf-8") for path in Path(folder).glob("*.py"))
    assert [
        kind.__name__
        for kind in (kinds(entity, library, companions) - NOT_OF_STORES)
        if f"{kind.__name__}(" not in suites
    ] == []


async def typed(store: Store, awaited: AsyncStore, stage: Stage) -> None:
    """Not run: mypy checks it."""
    assert_type(store.perform(LoadEntity(ENTITY)), Loaded | NoAnswer | Busy)
    assert_type(await awaited.perform(stage), Written | Conflict | Unknown | Busy)


class Wrong(AsyncAdapter):
    """Every mark is wrong. mypy reports it, and reports an ignored error that goes away."""

    @performs(LoadEntity)  # type: ignore[arg-type]
    async def load(self, effect: SaveEntity) -> Loaded:
        return LOADED

    @performs(SaveEntity)  # type: ignore[arg-type]
    async def save(self, effect: SaveEntity) -> Loaded:
        return LOADED
