"""KVM of this machine. Sent to nodes."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

_KVM_GET_API_VERSION = 0xAE00


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Open KVM and ask for its version.

    `arguments`: `kvm`, its device, for tests.
    """
    device = Path(arguments.get("kvm", "/dev/kvm"))
    found: dict[str, Any] = {"there": device.exists(), "usable": False, "problem": None, "paravirtual": False}
    found["paravirtual"] = Path("/sys/module/kvm_pvm").is_dir()
    if not found["there"]:
        return found
    try:
        descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        found["problem"] = error.strerror
        return found
    try:
        found["usable"] = fcntl.ioctl(descriptor, _KVM_GET_API_VERSION) > 0
    except OSError as error:
        found["problem"] = error.strerror
    finally:
        os.close(descriptor)
    return found
