"""The emulated testbed for tests: started once for all of them, and ended with the last one.

`CSIT_EMULATED_TESTBED=NAME` takes one that `./csit emulate up --name NAME` has started, and leaves it running.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.emulation.image import MIRROR, cached, image
from resources.libraries.python.emulation.layout import EmulatedLayout
from resources.libraries.python.emulation.machine import QEMU
from resources.libraries.python.emulation.testbed import EmulatedTestbed, state_folder
from resources.libraries.python.errors import NotReady
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.access import Access
from resources.libraries.python.testbed.connection.ssh import SshConnection
from tests.integration.lab import merged

VARIABLE = "CSIT_EMULATED_TESTBED"
RING = {"generator": {"driver": "ring", "cores": 1}}
"""Of the TG in a topology."""
_UP_WITHIN_S = 900.0
_GREETS_WITHIN_S = 120.0
_PROGRAMS = (QEMU, "mmdebstrap", "mkfs.ext4", "setpriv")


def missing() -> str:
    """What this machine lacks for an emulated testbed; empty when nothing does."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        return f"not installed here: {', '.join(lacking)}"
    return "" if os.geteuid() == 0 or cached() else "needs root to build the disk image"


class Emulated:
    """The testbed. What tests do on a node besides the project's own work goes over the same SSH server."""

    def __init__(self, testbed: EmulatedTestbed) -> None:
        self.testbed = testbed
        self.topology = testbed.topology
        """Path of its topology file, as `./csit emulate` writes it."""

    @cached_property
    def nodes(self) -> dict[str, SshConnection]:
        """Connections by node: TG and DUT1."""
        accesses = {name: node.access for name, node in load_topology(self.topology).nodes.items()}
        return {name: SshConnection(name, access) for name, access in accesses.items() if isinstance(access, Access)}

    def run(self, node: str, *argv: str, within_s: float = 120.0) -> str:
        """Run a program as root on a node and return what it prints; one that fails raises CommandFailed."""
        return self.nodes[node].run(argv, within_s=within_s).stdout

    def shell(self, node: str, script: str, within_s: float = 120.0) -> str:
        """The same of a shell script."""
        return self.run(node, "sh", "-ec", script, within_s=within_s)

    def write_topology(self, folder: Path, *, loop: bool = False, **changes: Any) -> Path:
        """Write the topology file with parts that are other, merged into it; None takes a key away."""
        content = yaml.safe_load(self.topology.read_text(encoding="utf-8"))
        ports = content["nodes"]["TG"]["interfaces"]
        for port in [name for name, row in ports.items() if row["link"] == "loop" and not loop]:
            del ports[port]
        path = folder / "emulated.yaml"
        path.write_text(yaml.safe_dump(merged(content, changes), sort_keys=False), encoding="utf-8")
        return path

    def boot_id(self, node: str) -> str:
        """Another one after each start of the node's kernel."""
        return self.run(node, "cat", "/proc/sys/kernel/random/boot_id").strip()

    def reset(self, node: str) -> None:
        """Reset a node as its power button does; nothing there is ended in order. It greets when this returns.

        Seldom a machine that was reset under load comes up without its management network; then it is reset once more.
        """
        for last in (False, True):
            self.testbed.reset(node)
            time.sleep(1.0)  # the old kernel's server could still greet
            try:
                wait_until(f"{node} after its reset", lambda: self._silent(node), _GREETS_WITHIN_S, pause_s=1.0)
            except NotReady:
                if last:
                    raise
            else:
                return

    def _silent(self, node: str) -> str:
        state = next(each for each in self.testbed.states() if each.name == node)
        return "" if state.answers else "no SSH server yet"

    def close(self) -> None:
        """Close connections; machines go on."""
        for connection in self.__dict__.pop("nodes", {}).values():
            connection.close()


@contextmanager
def started(name: str = "tests") -> Iterator[Emulated]:
    """A testbed that ends with this process at the latest; `VARIABLE` may name another one in place of `tests`."""
    if name == "tests" and (given := os.environ.get(VARIABLE)):
        lab = Emulated(EmulatedTestbed(state_folder() / given))
        assert lab.testbed.record is not None, f"{VARIABLE}={given}, and no such testbed is running"
        try:
            yield lab
        finally:
            lab.close()
        return
    testbed = EmulatedTestbed(state_folder() / name, ends_with_us=True)
    layout = EmulatedLayout(queues=2, loop=True)
    testbed.up(layout, image(MIRROR, lambda *_: None), _UP_WITHIN_S, lambda *_: None)
    lab = Emulated(testbed)
    try:
        yield lab
    finally:
        lab.close()
        testbed.down()
