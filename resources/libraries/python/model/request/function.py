"""Properties of one network function besides kind and size: limits, and a user program."""

from typing import Annotated

from pydantic import Field

from resources.libraries.python.model.base import Frozen


class Limits(Frozen):
    """Resource limits of a network function; None is unlimited."""

    cpu: Annotated[float, Field(gt=0)] | None = None
    """CPUs, 1.0 for one: its threads and processes together get no more CPU time than that."""
    memory_mib: Annotated[int, Field(ge=16)] | None = None
    """Memory of its processes, or of its virtual machine."""
    cache_ways: Annotated[int, Field(ge=1, le=64)] | None = Field(default=None, exclude_if=lambda ways: ways is None)
    """Ways of the last-level cache that its data CPUs alone use."""
    network_pps: Annotated[float, Field(gt=0)] | None = Field(default=None, exclude_if=lambda pps: pps is None)
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
