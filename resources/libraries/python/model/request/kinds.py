"""Kinds of network functions: names that the declarations of drivers give a meaning."""

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from resources.libraries.python import driver_registry
from resources.libraries.python.model.base import Frozen, is_none
from resources.libraries.python.model.driver import Form, FunctionDriver


class Limits(Frozen):
    """Resource limits of a network function; None is unlimited."""

    cpu: Annotated[float, Field(gt=0)] | None = None
    """CPUs, 1.0 for one: its threads and processes together get no more CPU time than that."""
    memory_mib: Annotated[int, Field(ge=16)] | None = None
    """Memory of its processes, or of its virtual machine."""
    cache_ways: Annotated[int, Field(ge=1, le=64)] | None = Field(default=None, exclude_if=is_none)
    """Ways of the last-level cache that its data CPUs alone use."""
    network_pps: Annotated[float, Field(gt=0)] | None = Field(default=None, exclude_if=is_none)
    """Packets per second that each of its ports may receive."""


class UserProgram(Frozen):
    """A network function of the user's own, run inside the NF's network namespace. Argument vectors, no shell."""

    start: Annotated[tuple[str, ...], Field(min_length=1)]
    """Stays in the foreground as long as the NF lives. The words `{left}` and `{right}` become interface names."""
    stop: tuple[str, ...] = ()
    """Run before the program is ended; empty where a signal is enough."""
    stat: tuple[str, ...] = ()
    """Prints lines of `name value`: `packets` that it has processed, and `dropped` where it knows. Empty where it does
    not count."""


class NfKind(str):
    """The name of a kind of NF in topologies, test rows and records, with what its driver declares.

    Compared by value: two objects of one name are equal, and not the same object.
    """

    __slots__ = ()

    @property
    def driver(self) -> FunctionDriver:
        """The declaration."""
        return driver_registry.functions()[self]

    @property
    def is_namespace(self) -> bool:
        """Whether it is a network namespace in which the kernel itself forwards, in the data threads of its ports."""
        return self.driver.form is Form.NAMESPACE

    @property
    def is_routed(self) -> bool:
        """Whether the kernel of its network namespace routes, alone or with a program beside it."""
        return self.driver.form in {Form.NAMESPACE, Form.PROGRAM_BESIDE}

    @property
    def is_vm(self) -> bool:
        """Whether it is a virtual machine."""
        return self.driver.form is Form.VM

    @property
    def in_guest(self) -> "NfKind | None":
        """The application of its guests, by the kind that runs it in a network namespace; None if there is none."""
        return None if self.driver.in_guest is None else NfKind(self.driver.in_guest)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: object, __: object) -> CoreSchema:
        return core_schema.no_info_after_validator_function(_known, core_schema.str_schema())

    @classmethod
    def __get_pydantic_json_schema__(cls, _: object, __: object) -> dict[str, Any]:
        return {"type": "string", "enum": [str(kind) for kind in driver_registry.functions()]}


def are_vms(kinds: Collection[NfKind | None]) -> bool:
    """Whether a service of these kinds has virtual machines and nothing else, and so is a VSC."""
    return bool(kinds) and all(kind is not None and kind.is_vm for kind in kinds)


def _known(name: str) -> NfKind:
    if name not in driver_registry.functions():
        expected = driver_registry.expected(driver_registry.functions())
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
    return NfKind(name)
