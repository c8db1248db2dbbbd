"""What Open vSwitch answers, read."""

import json
import re

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import InterfaceCounters

_THREAD = re.compile(r"pmd thread .*core_id (\d+):")
_QUEUE = re.compile(r"port: (\S+)\s+queue-id:\s*(\d+)")
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*")
_SLEEPS_FROM = (3, 1)
_DATAPATH_PORT = re.compile(r"(?:^| )\s*port \d+: (\S+)")
"""After a port without statistics the next one is on the same line."""
_RECEIVED = re.compile(r"^\s*RX packets:(\d+) errors:(\S+) dropped:(\S+)")
_SENT = re.compile(r"^\s*TX packets:(\d+) errors:(\S+) dropped:(\S+)")


def polling_cpus(shown: str) -> dict[str, dict[int, int]]:
    """Read `dpif-netdev/pmd-rxq-show`: on which CPU each queue of each port is polled."""
    cpu: int | None = None
    found: dict[str, dict[int, int]] = {}
    for line in shown.splitlines():
        if match := _THREAD.search(line):
            cpu = int(match[1])
        elif (match := _QUEUE.search(line)) and cpu is not None:
            found.setdefault(match[1], {})[int(match[2])] = cpu
    return found


def version(said: str) -> str:
    """The version in what `version` answers: `ovs-vswitchd (Open vSwitch) 3.1.0`."""
    match = _VERSION.search(said)
    return match[0] if match else "unknown version"


def pmd_sleeps(version_text: str) -> bool:
    """Whether PMD threads of this version can sleep when nothing comes."""
    match = _VERSION.match(version_text)
    return match is not None and (int(match[1]), int(match[2])) >= _SLEEPS_FROM


def type_names(printed: str) -> frozenset[str]:
    """Read the column `iface_types` or `datapath_types` as `ovs-vsctl get` prints it: `[afxdp, dpdk, internal]`."""
    return frozenset(word.strip(' "') for word in printed.strip().strip("[]").split(",") if word.strip())


def interface_errors(printed: str) -> dict[str, str]:
    """Read `ovs-vsctl --format=json --columns=name,error list Interface`: errors by interface, for those that have one.

    Raises:
        CsitError: It is not what was asked for.
    """
    try:
        rows = json.loads(printed)["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise CsitError(f"ovs-vsctl did not print a table: {printed[:100]!r}") from error
    return {name: error for name, error in rows if isinstance(error, str) and error}


def port_counters(shown: str) -> dict[str, InterfaceCounters]:
    """Read `dpctl/show -s`: counters by port, as Open vSwitch itself counts."""
    found: dict[str, InterfaceCounters] = {}
    name, received = "", (0, 0)
    for line in shown.splitlines():
        if match := _DATAPATH_PORT.search(line):
            name = match[1]
        elif name and (match := _RECEIVED.match(line)):
            received = (int(match[1]), sum(int(word) for word in match.groups()[1:] if word.isdigit()))
        elif name and (match := _SENT.match(line)):
            lost = sum(int(word) for word in match.groups()[1:] if word.isdigit())
            found[name] = InterfaceCounters(received[0], int(match[1]), received[1], lost)
            name = ""
    return found


def down(printed: str) -> tuple[str, ...]:
    """Read `ovs-vsctl --format=json --columns=name,link_state list Interface`: ports whose link is down.

    Raises:
        CsitError: It is not what was asked for.
    """
    try:
        rows = json.loads(printed)["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise CsitError(f"ovs-vsctl did not print a table: {printed[:100]!r}") from error
    return tuple(name for name, state in rows if state == "down")
