"""Drivers, declared by the packages in the folder of their role.

This module and declarations are pure, so that models and planning can look drivers up. Declarations are imported when
the first driver is looked up, drivers themselves when one is made.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Literal, ParamSpec, TypeVar, cast

from pydantic import Field, create_model
from pydantic_core import PydanticCustomError

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.driver import (
    Driver,
    FunctionDriver,
    GeneratorDriver,
    Leftover,
    NodeCheck,
    VSwitchDriver,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ROOT = "resources.libraries.python.drivers"
_ROLES = tuple(import_module(f"{_ROOT}.{role}") for role in ("vswitches", "generators", "functions", "probes"))
_FOLDERS = (import_module(_ROOT), *_ROLES)
"""Packages whose packages declare something."""


def _by_path(look_up: Callable[_P, _T]) -> Callable[_P, _T]:
    """Cache the results of a function for as long as the same folders are searched."""
    called: Callable[..., _T] = look_up

    @cache
    def found(_: tuple[str, ...], *args: Any) -> _T:  # noqa: ANN401 - those of the function
        return called(*args)

    @wraps(look_up)
    def cached(*args: _P.args, **_: _P.kwargs) -> _T:
        return found(tuple(path for folder in _FOLDERS for path in folder.__path__), *args)

    return cached


@_by_path
def vswitches() -> dict[str, VSwitchDriver]:
    """Virtual switches by name."""
    return {each.name: each for each in _registered("vswitches")}


@_by_path
def generators() -> dict[str, GeneratorDriver]:
    """Traffic generators by name."""
    return {each.name: each for each in _registered("generators")}


@_by_path
def functions() -> dict[str, FunctionDriver]:
    """Network functions by kind: those that are declared, then applications in the guests of one that runs them."""
    found: dict[str, FunctionDriver] = {each.name: each for each in _registered("functions")}
    guests = [
        replace(
            host,
            name=f"{host.name}_{each.guest.name}",
            word=each.word,
            in_guest=each.name,
            host=host.name,
            listed=(),
            passive=each.passive,
            takes=each.takes,
            translates=each.translates,
            simple=False,
        )
        for host in found.values()
        if host.runs_guests
        for each in found.values()
        if each.guest is not None
    ]
    return {**found, **{each.name: each for each in guests}}


@_by_path
def leftovers() -> dict[str, Leftover]:
    """Leftovers of driver packages on a machine after a killed run, by their keys on the record of the lock."""
    return {each.key: each for each in _declared("LEFTOVERS")}


@_by_path
def container_engines() -> tuple[str, ...]:
    """Names of the container engines that NFs can run in."""
    return tuple(_declared("ENGINES"))


@_by_path
def node_checks() -> tuple[NodeCheck, ...]:
    """Doctor checks of driver packages on nodes, in the order of the packages."""
    return tuple(_declared("CHECKS"))


def load(name: str) -> Callable[..., Any]:
    """Import a function by its dotted name (`package.module:function`)."""
    module, _, function = name.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))


def known_vswitch(name: str) -> str:
    """Return a name of a vSwitch, or refuse one that no driver has; for validation of topologies."""
    return check_known(name, list(vswitches()))


def known_generator(name: str) -> str:
    """Return a name of a generator, or refuse one that no driver has; for validation of topologies."""
    return check_known(name, list(generators()))


def known_engine(name: str) -> str:
    """Return a choice of a container engine, or refuse one that there is not; for validation of topologies."""
    return check_known(name, ["none", "auto", *container_engines()])


@_by_path
def settings_of(node_type: Literal["TG", "DUT"]) -> type[Frozen]:
    """Model of the settings of drivers that a node can have, by key.

    Raises:
        ValueError: Two drivers have different settings under one key.
    """
    drivers: list[Driver] = (
        [*generators().values()] if node_type == "TG" else [*vswitches().values(), *functions().values()]
    )
    found: dict[str, type[Frozen]] = {}
    for driver in drivers:
        for key, model in driver.options.items():
            if found.setdefault(key, model) is not model:
                raise ValueError(f"{driver.name} and another driver have different settings under the key {key}")
    fields: dict[str, Any] = {key: (model, Field(default_factory=model)) for key, model in found.items()}
    described = f"Settings of drivers, as keys of a node of type {node_type}."
    return create_model(f"SettingsOf{node_type}", __base__=Frozen, __doc__=described, **fields)


@_by_path
def key_of(options: type[Frozen]) -> str:
    """Key of a node under which settings are."""
    every = (*generators().values(), *vswitches().values(), *functions().values())
    return next(key for driver in every for key, model in driver.options.items() if model is options)


def check_known(name: str, names: Collection[str]) -> str:
    """Return a name, or refuse one that is not among some names; for validation of topologies."""
    if name not in names:
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected(names)})
    return name


def expected(names: Collection[str]) -> str:
    """Names as the validation of literals lists them."""
    *first, last = (f"'{each}'" for each in names)
    return f"{', '.join(first)} or {last}" if first else last


def _registered(folder: str) -> Iterator[Any]:
    """The drivers that the packages of a folder declare, in the order of the packages' names."""
    for module in _declaring(import_module(f"{_ROOT}.{folder}")):
        yield from getattr(module, "DRIVERS", ())


def _declared(name: str) -> Iterator[Any]:
    """Declarations of all packages under a name, those without a role among them."""
    for folder in _FOLDERS:
        for module in _declaring(folder):
            yield from getattr(module, name, ())


def _declaring(folder: ModuleType) -> Iterator[ModuleType]:
    """What declares in each package of a folder of drivers: the package, or its module `registration` if it has one."""
    for found in iter_modules(folder.__path__, f"{folder.__name__}."):
        if found.ispkg:
            apart = f"{found.name}.registration"
            yield import_module(apart if find_spec(apart) else found.name)
