"""The drivers that there are: found by the module `registration` of each package in the folder of their role.

This module and registrations are pure, so that models and planning can look drivers up. Registrations are imported when
the first driver is looked up, drivers themselves when one is made.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from resources.libraries.python.model.base import Misfit

if TYPE_CHECKING:
    from resources.libraries.python.model.driver import Driver, FunctionDriver, GeneratorDriver, VSwitchDriver
    from resources.libraries.python.model.kinds import NfKind


@cache
def vswitches() -> "dict[str, VSwitchDriver]":
    """Virtual switches by name."""
    return {each.name: each for each in _registered("vswitches")}


@cache
def generators() -> "dict[str, GeneratorDriver]":
    """Traffic generators by name."""
    return {each.name: each for each in _registered("generators")}


@cache
def functions() -> "dict[NfKind, FunctionDriver]":
    """Network functions by kind."""
    return {each.kind: each for each in _registered("functions")}


def forget() -> None:
    """Look for drivers anew at the next question: tests add packages while they run."""
    for known in (vswitches, generators, functions):
        known.cache_clear()


def load(name: str) -> Callable[..., Any]:
    """Import a function by its dotted name (`package.module:function`)."""
    module, _, function = name.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))


def known_vswitch(name: str) -> str:
    """Return a name of a vSwitch, or refuse one that no driver has; for validation of topologies."""
    return _known(name, list(vswitches()))


def known_generator(name: str) -> str:
    """Return a name of a generator, or refuse one that no driver has; for validation of topologies."""
    return _known(name, list(generators()))


def check_options(driver: "Driver", options: Mapping[str, Any], place: tuple[str, ...]) -> None:
    """Validate the settings of a driver in a topology.

    Args:
        driver: Declares them.
        options: As the topology has them.
        place: Where they are in the model that has them.

    Raises:
        Misfit: With the place of the first that is wrong.
    """
    if driver.options is None:
        if options:
            raise Misfit(place, f"{driver.name} has no options")
        return
    try:
        driver.options.model_validate(options)
    except ValidationError as error:
        first = error.errors()[0]
        raise Misfit((*place, *first["loc"]), first["msg"]) from error


def _known(name: str, names: list[str]) -> str:
    if name not in names:
        *first, last = (f"'{each}'" for each in names)
        expected = f"{', '.join(first)} or {last}"
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": expected})
    return name


def _registered(folder: str) -> Iterator[Any]:
    """The drivers that the packages of a folder declare, in the order of the packages' names."""
    role = import_module(f"resources.libraries.python.drivers.{folder}")
    for found in iter_modules(role.__path__, f"{role.__name__}."):
        if found.ispkg:
            package = import_module(found.name)
            if any(module.name == "registration" for module in iter_modules(package.__path__)):
                yield from import_module(f"{found.name}.registration").DRIVERS
