"""Sockets by which two programs meet to share memory: one for each link, in the folder of the end that listens."""

from pathlib import Path

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.plan import Link

_FOLDER = "shared_memory"
_ENDINGS = {Medium.MEMIF: "memif", Medium.VHOST_USER: "vhost"}


def folder_of(machine: MachineLock) -> Path:
    """Has a folder for each owner that listens."""
    return machine.folder(_FOLDER)


def socket_of(folder: Path, link: Link) -> Path:
    """Where the ends of a link of shared memory meet; end `a` listens.

    `folder`: From `folder_of`.
    `link`: Of medium memif or vhost_user.
    """
    return folder / link.a.owner / f"{link.a.interface}.{_ENDINGS[link.medium]}"
