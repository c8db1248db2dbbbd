"""Network functions as an OpenVPN tunnel with both ends in one network namespace.

The ends authenticate by keys that are generated at each start.
"""

import hashlib
import re
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions import tunnels
from resources.libraries.python.drivers.host.programs.program_output import completed, path_of
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.plan import NfPlan
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.rendering import render

CIPHER = "AES-256-GCM"
"""Of the packets: OpenVPN's own first choice."""
_TEMPLATE = "openvpn.conf.j2"


LEFT, RIGHT = tunnels.TunnelEnd("tun-left", "server", 1194, 101), tunnels.TunnelEnd("tun-right", "client", 1195, 102)
ENDS = (LEFT, RIGHT)
"""The same in every NF: each has a network namespace of its own."""


_DAYS = "3650"
"""Longer than any run."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate that is signed by itself, and its key."""

    certificate: Path
    key: Path
    """Mode 0600."""
    fingerprint: str
    """SHA-256 of the certificate as `AA:BB:...`."""

    def forget(self) -> None:
        """Remove the key file; programs that have read it keep the key."""
        self.key.unlink(missing_ok=True)


def make_identity(openssl: str, folder: Path) -> Identity:
    """Make one.

    Raises:
        CommandFailed: The program failed.
        NotReady: It did not end.
        CsitError: It cannot be run.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    key.touch(mode=0o600)
    argv = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256"]
    argv += ["-days", _DAYS, "-subj", "/CN=csit", "-keyout", str(key), "-out", str(certificate)]
    completed(argv, _WITHIN_S, what="a certificate by openssl")
    return Identity(certificate, key, fingerprint(certificate.read_text(encoding="ascii")))


def fingerprint(certificate: str) -> str:
    """SHA-256 of a certificate (PEM) as `AA:BB:...`."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).digest().hex(":").upper()


def configuration(end: tunnels.TunnelEnd, own: Identity, accepted: str, mtu: int) -> str:
    """The configuration file of an end; it has the paths of keys only.

    `accepted`: Fingerprint of the other end's certificate; no other one is accepted.
    `mtu`: Bytes of the largest IP packet.
    """
    values = {"end": end, "peer": RIGHT if end is LEFT else LEFT, "own": own, "accepted": accepted, "mtu": mtu}
    return render(_TEMPLATE, {**values, "cipher": CIPHER})


class OpenVpns(tunnels.Tunnels):
    """NFs that encrypt packets and decrypt them again by two processes of OpenVPN."""

    _does = f"encrypts each packet by {CIPHER} and decrypts it again, in two processes"

    def __init__(self, node: DutNode, context: DriverContext, functions: Sequence[NfPlan]) -> None:
        super().__init__(node, context, functions, "openvpn")
        self._identities: list[Identity] = []

    def ends(self, name: str) -> tuple[tunnels.TunnelEnd, tunnels.TunnelEnd]:  # noqa: ARG002
        """The same in every NF, as each has a network namespace of its own."""
        return ENDS

    def start(self) -> None:
        super().start()
        for own in self._identities:
            own.forget()  # both ends have read it, and never do it again

    def make(self) -> str:
        """Start the left ends, then the right ones."""
        program, openssl = path_of("openvpn") or "openvpn", path_of("openssl") or "openssl"
        self._identities = [make_identity(openssl, companions.folder) for companions in self._companions]
        for side, (end, own, other) in enumerate(zip(ENDS, self._identities, self._identities[::-1], strict=True)):
            companions = self._companions[side]
            file = companions.folder / "openvpn.conf"
            file.write_text(configuration(end, own, other.fingerprint, self._fabric.mtu), encoding="ascii")
            for name in self._owners:
                companions.start(name, [program, "--config", str(file)])
            # Each listens before the other side starts, which finds it.
            for function in self._functions:
                missing = partial(self.not_open, function.name, end)
                self._wait_for(function.name, side, f"an open {end.device}", missing)
                self._route_into(function, side)
        return tunnels.version(program)


_FOR = "for NFs of kind openvpn"
_OLDEST = (2, 6)
"""Earlier ones cannot know each other by a fingerprint alone."""
_WITHIN_S = 15.0


def missing(*_: object) -> Iterator[PreflightProblem]:
    """Requirements that this machine lacks."""
    for program in ("openvpn", "openssl"):
        if path_of(program) is None:
            yield PreflightProblem(f"{program} missing {_FOR}", f"install it: apt-get install {program}")
    if (path := path_of("openvpn")) is not None:
        found = tunnels.version(path)
        if tuple(map(int, re.findall(r"\d+", found))) < _OLDEST:
            yield PreflightProblem(
                f"{found} is too old {_FOR}", "install 2.6 or later: Debian 12 and Ubuntu 24.04 have it"
            )
    yield from tunnels.no_tun(_FOR)
