"""The programs of Open vSwitch on this machine, and what is missing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.vswitches.ovs.registration import WITH_DPDK, Ovs, variant
from resources.libraries.python.model.nodes import DutNode

_SEARCHED = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_WITH_DPDK = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
"""Where Debian and Ubuntu put the daemon that was built with DPDK; elsewhere `ovs-vswitchd` itself may be."""
_TUN = Path("/dev/net/tun")
SCHEMAS = (
    Path("/usr/share/openvswitch/vswitch.ovsschema"),
    Path("/usr/local/share/openvswitch/vswitch.ovsschema"),
)
NEEDED = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-appctl", "ovs-ofctl", "ovs-vswitchd")


def path_of(program: str) -> str:
    """Where a program is; its name where it is nowhere, so that starting it says what is missing."""
    return shutil.which(program, path=_SEARCHED) or program


def forwarder(asked: str) -> str:
    """The forwarding daemon for a kind of ports."""
    return str(_WITH_DPDK) if asked == "dpdk" and _WITH_DPDK.exists() else path_of("ovs-vswitchd")


def schema() -> Path:
    """The database schema."""
    return next((path for path in SCHEMAS if path.exists()), SCHEMAS[0])


def missing(asked: str) -> Iterator[Problem]:
    """What this machine lacks for Open vSwitch with a kind of ports."""
    lacking = [program for program in NEEDED if shutil.which(program, path=_SEARCHED) is None]
    if lacking or not any(path.exists() for path in SCHEMAS):
        what = ", ".join(lacking) or "the database schema of Open vSwitch"
        yield Problem(f"{what} missing for the vSwitch ovs", "install it: apt-get install openvswitch-switch")
    elif asked == "dpdk" and not _WITH_DPDK.exists():
        yield Problem(
            f"{_WITH_DPDK} missing for Open vSwitch with DPDK",
            "install it: apt-get install openvswitch-switch-dpdk librte-net-af-packet23, or take other ports",
        )
    if not _TUN.exists():
        yield Problem(f"{_TUN} missing for the vSwitch ovs", "load the module: modprobe tun")


def missing_on(node: DutNode) -> Iterator[Problem]:
    """What this machine lacks for the vSwitch of a node."""
    return missing("dpdk" if variant(node) == WITH_DPDK else node.settings(Ovs).ports)
