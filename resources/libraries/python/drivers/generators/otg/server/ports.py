"""Ports of an OTG server: interfaces of this machine or a network namespace, which it may not have yet."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from resources.libraries.python.drivers.generators.builtin import kernel
from resources.libraries.python.drivers.generators.otg.server.schema import OtgConfig
from resources.libraries.python.drivers.host.links.namespace_syscalls import aside
from resources.libraries.python.drivers.host.links.namespaces import DIRECTORY
from resources.libraries.python.drivers.host.nics import ethtool
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.bounds import quoted


def missing_ports(locations: Sequence[str], namespace: str = "", cpus: Sequence[int] = ()) -> str:
    """Check that what is to be served can send packets, which a client would learn only from its first flow.

    Args:
        locations: Interfaces to be served.
        namespace: Network namespace that has them, or will have them; empty for the present one.
        cpus: Where the workers run.

    Returns:
        What is not there yet, in words: the namespace, or interfaces in it. Empty where nothing is missing.

    Raises:
        ConfigError: Without a namespace an interface is not there; or a worker cannot run on a CPU.
        CsitError: Packets may not be sent, or the namespace may not be entered.
    """
    return aside(partial(_missing_ports, locations, namespace, cpus))


def port_speeds_bps(namespace: str, locations: Sequence[str], config: OtgConfig) -> dict[str, float | None]:
    """Return the speed of each interface that a configuration may use.

    Raises:
        CsitError: One that it does use is not there, or has no carrier although there are flows.
    """
    return aside(partial(_speeds_bps, namespace, locations, config))


def links_up(namespace: str, names: Sequence[str]) -> dict[str, bool]:
    """Return whether the link of each interface is up."""
    return aside(partial(_links_up, namespace, names))


def _missing_ports(locations: Sequence[str], namespace: str, cpus: Sequence[int]) -> str:
    if unusable := _unusable(cpus):
        raise ConfigError(f"--cpus: no worker can run on CPU {', '.join(map(str, unusable))} of this machine")
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError as error:
        raise CsitError(f"raw packets cannot be sent: {error.strerror}; run as root") from error
    if namespace and not (DIRECTORY / namespace).exists():
        return f"there is no namespace {namespace} yet"
    if namespace:
        kernel.enter_namespace(namespace)
    found = [name for _, name in socket.if_nameindex()]
    missing = [name for name in locations if not _is_there(name)]
    if missing and not namespace:
        raise ConfigError(f"no interface '{quoted(missing[0])}' on this machine, only {quoted(', '.join(found))}")
    return f"not in namespace {namespace} yet: {', '.join(missing)}" if missing else ""


def _unusable(cpus: Sequence[int]) -> list[int]:
    """CPUs on which this thread cannot run; it stays on the others."""
    if not cpus:
        return []
    with suppress(OSError):  # none of them
        os.sched_setaffinity(0, cpus)
    return sorted(set(cpus) - os.sched_getaffinity(0))


def _is_there(interface: str) -> bool:
    """Whether an interface has a name, which may be one of its other names."""
    try:
        return socket.if_nametoindex(interface) > 0
    except OSError:
        return False


def _speeds_bps(namespace: str, locations: Sequence[str], config: OtgConfig) -> dict[str, float | None]:
    if namespace:
        kernel.enter_namespace(namespace)
    names = locations or [name for _, name in socket.if_nameindex() if name != "lo"]
    used = {port.location: f"ports[{index}].location" for index, port in enumerate(config.ports)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in names:
            # Without flows clients ask whether ports exist, before the other ends are taken into use.
            if name in used and not kernel.link_is_up(name) and config.flows:
                raise CsitError(f"{used[name]}: {name} is down")
        return {name: ethtool.speed_bps(sock, name) for name in names}


def _links_up(namespace: str, names: Sequence[str]) -> dict[str, bool]:
    if namespace:
        kernel.enter_namespace(namespace)
    return {name: kernel.link_is_up(name) for name in names}
