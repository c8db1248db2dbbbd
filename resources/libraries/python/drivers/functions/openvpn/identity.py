"""Keys by which the ends of tunnels authenticate, made anew for each start."""

import hashlib
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from resources.libraries.python.errors import CommandFailed, CsitError, NotReady

_WITHIN_S = 15.0
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


def make(openssl: str, folder: Path) -> Identity:
    """Make one.

    Args:
        openssl: The program.
        folder: Where its files go.

    Raises:
        CommandFailed: The program failed.
        NotReady: It did not end.
        CsitError: It cannot be run.
    """
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    key.touch(mode=0o600)
    argv = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256"]
    argv += ["-days", _DAYS, "-subj", "/CN=csit", "-keyout", str(key), "-out", str(certificate)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False)
    except OSError as error:
        raise CsitError(f"{openssl} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise NotReady("a certificate by openssl", _WITHIN_S, "still running") from error
    if done.returncode:
        raise CommandFailed(argv, done.returncode, done.stderr.decode(errors="replace"))
    return Identity(certificate, key, fingerprint(certificate.read_text(encoding="ascii")))


def fingerprint(certificate: str) -> str:
    """SHA-256 of a certificate (PEM) as `AA:BB:...`."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).digest().hex(":").upper()
