"""Contents of the packets of a flow, from `resources/traffic_profiles/density.yaml`."""

from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from resources.libraries.python.model.base import Frozen
from resources.libraries.python.model.load import load_yaml
from resources.libraries.python.paths import RESOURCES

PROFILE_FILE = RESOURCES / "traffic_profiles" / "density.yaml"

Byte = Annotated[int, Field(ge=0, le=255)]


class LoadPackets(Frozen):
    """Packets that are the load."""

    protocol: Byte
    """Of IPv4."""
    ttl: Annotated[int, Field(ge=1, le=255)]
    dscp: Annotated[int, Field(ge=0, le=63)]
    sources: Literal["increment", "random"]
    """The order in which a flow's source addresses are used."""
    udp_port: Annotated[int, Field(ge=1, le=65535)]
    """Destination port where the load is to be UDP datagrams."""


class ProbePackets(Frozen):
    """Packets whose latency is measured."""

    protocol: Literal[17]
    """UDP: latency is measured by what is in the payload."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Of source and destination."""
    ttl: Annotated[int, Field(ge=1, le=255)]
    dscp: Annotated[int, Field(ge=0, le=63)]


class TrafficProfile(Frozen):
    """Contents of the packets of every flow."""

    load: LoadPackets
    probes: ProbePackets


@cache
def traffic_profile() -> TrafficProfile:
    """The project's profile.

    Raises:
        ConfigError: The file is missing or wrong.
    """
    return load_yaml(PROFILE_FILE, TrafficProfile)
