"""The commands that VPP's templates give."""

from collections.abc import Mapping

from resources.libraries.python.rendering import render


def commands(template: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The commands that a template gives, one from each line; lines that begin with # are remarks."""
    lines = (" ".join(line.split()) for line in render(template, values).splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
