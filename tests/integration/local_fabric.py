"""Cells of the local testbed and single frames through them."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.functions.linux_router.driver import LinuxRouters
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.planning.names import GENERATOR
from tests.builders import shipped

_DUT = shipped("local").dut


FRAMES, TTL = 20, 64


def linux_routers(plan: Plan, fabric: Fabric, machine: MachineLock) -> LinuxRouters:
    return LinuxRouters(_DUT, DriverContext(plan, fabric, machine, 1518), plan.functions)


@contextmanager
def deployed(plan: Plan, machine: MachineLock) -> Iterator[tuple[Fabric, LinuxBridge, LinuxRouters]]:
    fabric = Fabric(plan, machine)
    parts = fabric, LinuxBridge(plan, fabric), linux_routers(plan, fabric, machine)
    with ExitStack() as stack:
        for part in parts:
            stack.callback(part.stop)
            part.start()
        yield parts


def packet(
    flow: Flow, payload: bytes = bytes(18), *, ttl: int = TTL, protocol: int = 17, ports: tuple[int, int] = (9, 9)
) -> bytes:
    """An IPv4 packet of a flow with a right checksum and no fragments; of 64 bytes in a frame with FCS."""
    addresses = socket.inet_aton(flow.source_ip) + socket.inet_aton(flow.destination_ip)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 7, 0x4000, ttl, protocol, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    udp = struct.pack("!HHHH", *ports, 8 + len(payload), 0)
    return header[:10] + struct.pack("!H", checksum) + header[12:] + udp + payload


def frame(flow: Flow, payload: bytes = bytes(18), *, protocol: int = 17, ports: tuple[int, int] = (9, 9)) -> bytes:
    """Its Ethernet frame, without FCS."""
    ethernet = bytes.fromhex((flow.destination_mac + flow.source_mac).replace(":", "")) + b"\x08\x00"
    return ethernet + packet(flow, payload, protocol=protocol, ports=ports)


def send(flow: Flow, count: int, payload: bytes = bytes(18)) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
        port.bind((flow.tx_interface, 0))
        for _ in range(count):
            port.send(frame(flow, payload))


def difference(fabric: Fabric, before: dict[str, InterfaceCounters], wanted: dict[str, int]) -> str:
    """Frames that each port of the generator received; empty when they are the wanted ones."""
    counted = {name: (now - before[name]).rx_packets for name, now in fabric.counters([GENERATOR]).items()}
    return "" if counted == wanted else str(counted)
