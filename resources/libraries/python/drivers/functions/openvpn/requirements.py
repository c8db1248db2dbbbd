"""What a machine needs for NFs that are tunnels."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode

_FOR = "for NFs of kind openvpn"
_TUN = Path("/dev/net/tun")
_OLDEST = (2, 6)
"""Earlier ones cannot know each other by a fingerprint alone."""
_WITHIN_S = 15.0


def missing() -> Iterator[Problem]:
    """What this machine lacks."""
    for program in ("openvpn", "openssl"):
        if path_of(program) is None:
            yield Problem(f"{program} missing {_FOR}", f"install it: apt-get install {program}")
    if (path := path_of("openvpn")) is not None:
        found = version(path)
        if _numbers(found) < _OLDEST:
            yield Problem(f"{found} is too old {_FOR}", "install 2.6 or later: Debian 12 and Ubuntu 24.04 have it")
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        fix = "load the driver: modprobe tun; in a container: --device /dev/net/tun"
        yield Problem(f"{_TUN} cannot be opened {_FOR} ({error.strerror})", fix)


def version(path: str) -> str:
    """What openvpn says of itself: `OpenVPN 2.6.14`.

    Raises:
        CsitError: It cannot be run.
    """
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CsitError(f"{path} cannot be run: {error}") from error
    return " ".join(done.stdout.decode(errors="replace").split()[:2])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def missing_on(_: DutNode, __: NfKind) -> Iterator[Problem]:
    """What this machine lacks for NFs of a node."""
    return missing()
