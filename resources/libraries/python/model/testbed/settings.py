"""Settings of a node that belong to no single driver: the choice of a generator, containers, shared cores."""

from typing import Annotated

from pydantic import AfterValidator, Field

from resources.libraries.python.driver_registry import known_engine, known_generator
from resources.libraries.python.model.base import Frozen, of_form


class Generator(Frozen):
    """The traffic generator of a TG node."""

    driver: Annotated[str, AfterValidator(known_generator)]
    """`auto` is the best of the built-in ones that the machine allows; a result says which one it was."""
    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Physical cores for sending; at most 2 where the generator shares the machine with the system under test."""


class Sizes(Frozen):
    """Core sharing of threads (CSIT's nf_mtcr, nf_dtcr)."""

    system_cores: Annotated[int, Field(ge=0)] = 1
    nf_mains_per_core: Annotated[int, Field(ge=1, le=2)] = 2


class Container(Frozen):
    """Container settings of the NFs of a CSC or CSP."""

    engine: Annotated[str, AfterValidator(known_engine)] = "none"
    """`none` is a network namespace without a container; `auto` is the first engine that starts a container, else
    `none`. A result says which one it was."""
    image: Annotated[str, of_form(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}", "the name of an image")] | None = None
    """Image of the containers; None for the file system of the node, read-only, with its own programs."""
