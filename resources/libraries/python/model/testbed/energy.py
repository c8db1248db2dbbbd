"""Energy meter of a node, as a topology names it. No secret is ever in a topology: only where it is kept."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from resources.libraries.python.model.base import Frozen, Misfit
from resources.libraries.python.model.testbed.access import Port, SecretReference

_Interval = Annotated[float, Field(ge=0.1, le=60)]


class Powercap(Frozen):
    """Energy counters of the processors (RAPL), which the kernel shows under `/sys/class/powercap`."""

    meter: Literal["powercap"] = "powercap"


class Ipmi(Frozen):
    """Power reading of DCMI: of the node's own BMC through the kernel's driver, or of a BMC over the network."""

    meter: Literal["ipmi"]
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]+$")] | None = None
    """Address of the BMC, which the controller asks; None for that of the node itself, which is asked there."""
    port: Port = 623
    user: str | None = None
    password: SecretReference | None = None
    cipher_suite: Annotated[int, Field(ge=0, le=17)] | None = None
    """Cipher suite of the session; None for the best that the BMC names."""
    interval_s: _Interval = 1.0
    """Time over which the BMC takes the mean, and after which it has another reading."""

    @model_validator(mode="after")
    def _login_needs_host(self) -> Self:
        if self.host is None and (self.user is not None or self.password is not None):
            raise Misfit(("host",), "required with user and password: the node's own BMC needs no login")
        return self


class Redfish(Frozen):
    """Power of a chassis, which its BMC serves over HTTPS. The certificate is always checked."""

    meter: Literal["redfish"]
    url: Annotated[str, Field(pattern=r"^https://[A-Za-z0-9_.:\[\]-]+/?$")]
    chassis: Annotated[str, Field(min_length=1)] | None = None
    """Id of the chassis; None for the only one."""
    user: str | None = None
    password: SecretReference | None = None
    interval_s: _Interval = 1.0
    """As that of `Ipmi`."""
    ca_file: str | None = None
    """Certificates that are trusted, as PEM; None for those of the system."""


EnergyMeter = Annotated[Powercap | Ipmi | Redfish, Field(discriminator="meter")]
