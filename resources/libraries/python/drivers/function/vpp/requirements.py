"""What a machine lacks for VPP as NFs."""

from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.function.vpp.container import answers
from resources.libraries.python.drivers.host.preflight import Problem
from resources.libraries.python.drivers.vpp.installation import missing as program_missing
from resources.libraries.python.model.settings import Vpp


def missing(settings: Vpp) -> Iterator[Problem]:
    """What this machine lacks: VPP, or the container engine that the topology asks for by name."""
    yield from program_missing(Path(settings.prefix), ("memif", "af_packet"))
    if settings.engine in ("docker", "podman") and not answers(settings.engine):
        yield Problem(
            f"the container engine {settings.engine} does not answer (`{settings.engine} info`)",
            "start it, or set nodes.<DUT>.vpp.engine to process",
        )
    if settings.engine == "docker" and settings.image is None:
        yield Problem("Docker needs an image for VPP", "set nodes.<DUT>.vpp.image, or engine podman or process")
