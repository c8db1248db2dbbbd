"""The sysfs of a network namespace, where mounting it fails."""

import errno
import os

import pytest

from resources.libraries.python.drivers.host.links import namespace_syscalls, namespaces
from resources.libraries.python.errors import Unsupported


@pytest.fixture(params=[errno.EBUSY, errno.EPERM])
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How the kernel refuses to mount a sysfs; any namespace can be entered."""

    def refuse(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    for module, name in ((namespaces, "enter"), (namespaces, "own_mounts"), (namespace_syscalls, "setns")):
        monkeypatch.setattr(module, name, lambda *_: None)
    for module in (namespaces, namespace_syscalls):
        monkeypatch.setattr(module, "mount", refuse)
    monkeypatch.setattr(namespace_syscalls, "unmount", refuse)
    return int(request.param)


def run(*, in_place: bool) -> str:
    if not in_place:
        return namespaces.run_inside("csit-vswitch", lambda: "done", sysfs=True)
    with namespace_syscalls.sysfs_of(0, "csit-vswitch"):
        return "done"


@pytest.mark.parametrize("in_place", [False, True])
def test_the_sysfs_that_is_there_already_is_used_and_another_error_is_named(code: int, in_place: bool) -> None:
    if code == errno.EBUSY:
        assert run(in_place=in_place) == "done"
        return
    with pytest.raises(Unsupported, match=r"^sysfs cannot be mounted for csit-vswitch: Operation not permitted$"):
        run(in_place=in_place)
