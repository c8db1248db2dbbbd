"""Any server of Open Traffic Generator (OTG, https://github.com/open-traffic-generator/models) as the generator."""

from ipaddress import ip_address
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, of_form
from resources.libraries.python.model.driver import GeneratorDriver, Leftover
from resources.libraries.python.model.request.traffic import Protocol

_PACKAGE = "resources.libraries.python.drivers.generators.otg"


_URL = of_form(r"(https?|grpcs?)://[A-Za-z0-9.:\[\]-]+/?", "the URL of a server such as https://192.0.2.1:8443")


class Otg(Frozen):
    """Where an OTG server is, and which of its ports are those of the testbed."""

    location: Annotated[str, Field(max_length=300), _URL] = "http://127.0.0.1:8443"
    """URL of the server: https or grpcs (gRPC with TLS); http or grpc on a loopback address."""
    verify: bool = True
    """Whether the server's certificate has to be trusted."""
    ca_file: str | None = None
    """File of the certificates that are trusted; None for those of the system."""
    ports: dict[str, str] = Field(default_factory=dict, max_length=64)
    """Location of a port on the server, by its name in the topology of a lab, else by the name of the interface. Others
    have the name of the device, or of the interface."""
    latency: bool = True
    """Whether the server is asked for latency."""

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        url = urlsplit(self.location)
        host = url.hostname or ""
        if url.scheme == "grpcs" and not self.verify:
            raise ValueError(f"location {self.location}: gRPC checks every certificate; name its file by ca_file")
        if url.scheme in ("http", "grpc") and host != "localhost" and not _is_loopback(host):
            raise ValueError(
                f"location {self.location}: {url.scheme} is for loopback addresses, others need {url.scheme}s"
            )
        return self


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


SERVERS = "otg_servers"
"""Servers that may be sending."""
LEFTOVERS = (Leftover(key=SERVERS, label="traffic of", entry=f"{_PACKAGE}:Otg", remove=f"{_PACKAGE}.driver:stop_left"),)
DRIVERS = (
    GeneratorDriver(
        name="otg",
        label="OTG server",
        options={"otg": Otg},
        factory=f"{_PACKAGE}.driver:make",
        missing=f"{_PACKAGE}.driver:missing_on",
        protocols=(Protocol.UDP, Protocol.TCP),
        tags_frames=True,
        ipv6=True,
        api=f"{_PACKAGE}.driver:OtgApi",
    ),
)
