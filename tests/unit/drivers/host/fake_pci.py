"""A PCI bus in a folder: files as in sysfs, and what a kernel does when they are written to."""

import errno
from pathlib import Path

from resources.libraries.python.drivers.host.nics.ethtool import Parameters
from resources.libraries.python.drivers.host.nics.nic_adoption import AdoptedPort
from resources.libraries.python.drivers.host.nics.nic_driver import Binding, PciDrivers, Surroundings
from resources.libraries.python.drivers.host.nics.port_inventory import Device

GROUP_NODE = "kernel/iommu_groups"
INDEX = 7
"""Of each port of the kernel."""
MAC = "3c:fd:fe:00:00:01"


def device(name: str, index: int = INDEX, *, mac: str = MAC, mtu: int = 1500, up: bool = True) -> Device:
    """A physical port as the kernel has it."""
    return Device(index, name, mac, mtu, up, up, promiscuous=False, loopback=False, kind=None, master=None, below=None)


GONE = AdoptedPort(
    interface="csg1p1", inside="csit-generator", device="nosuchport", home=1, bus="", mac="02:00:00:00:00:01", mtu=1500,
    up=True, promiscuous=False, gro=True, tso=True, lro=False, threaded=None, rx_queues=None, tx_queues=None,
    combined_queues=None,
)  # fmt: skip
"""A physical port that is not on this machine any more, as it is on record."""


class FakePci(Surroundings):
    """The surroundings of that sysfs. Devices are bound and unbound by what is written."""

    def __init__(self, root: Path, *drivers: str) -> None:
        self.root = root
        self.refusals: dict[str, str] = {}
        self.users: list[str] = []
        self.ending: list[str] = []
        """Users that are gone when they are looked for again."""
        self.restored: list[tuple[int, str, bool, int | None, Parameters]] = []
        self.parameters: dict[str, Parameters] = {}
        self.written: list[str] = []
        self._native: dict[str, str] = {}
        self._ports: dict[str, str] = {}
        (root / "bus/pci/devices").mkdir(parents=True)
        (root / "bus/pci/drivers_probe").touch()
        for name in drivers:
            self.add_driver(name)

    def load(self, module: str) -> None:
        """All drivers are loaded."""

    def add_driver(self, name: str) -> None:
        folder = self.root / "bus/pci/drivers" / name
        folder.mkdir(parents=True)
        (folder / "unbind").touch()

    def add(self, address: str, driver: str | None, *, port: str = "", group: int | None = None) -> Path:
        folder = self.root / "devices/pci0000:00" / address
        folder.mkdir(parents=True)
        (self.root / "bus/pci/devices" / address).symlink_to(folder)
        for name, text in (("class", "0x020000"), ("vendor", "0x8086"), ("device", "0x1572"), ("numa_node", "1")):
            (folder / name).write_text(f"{text}\n")
        (folder / "driver_override").write_text("(null)\n")
        if group is not None:
            members = self.root / GROUP_NODE / str(group) / "devices"
            members.mkdir(parents=True, exist_ok=True)
            (folder / "iommu_group").symlink_to(members.parent)
            (members / address).symlink_to(folder)
        self._ports[address] = port
        if driver is not None:
            self._native[address] = driver
            self._bind(address, driver)
        return folder

    def driver(self, address: str) -> str | None:
        link = self.root / "bus/pci/devices" / address / "driver"
        return link.resolve().name if link.is_symlink() else None

    def override(self, address: str) -> str:
        return (self.root / "bus/pci/devices" / address / "driver_override").read_text().strip()

    def write(self, path: Path, value: str) -> None:
        self.written.append(f"{path.relative_to(self.root)} {value.strip()}")
        if path.name == "driver_override":
            path.write_text(f"{value.strip() or '(null)'}\n")
        elif path.name == "unbind":
            self._unbind(value)
        elif path.name == "drivers_probe":
            wanted = self.override(value)
            name = self._native.get(value) if wanted == "(null)" else wanted
            if name is None or not (self.root / "bus/pci/drivers" / name).is_dir():
                raise OSError(errno.EINVAL, "Invalid argument")
            self._bind(value, name)

    def rebind(self, address: str, driver: str) -> None:
        """Give a device another driver, as driverctl does."""
        self.write(self.root / "bus/pci/devices" / address / "driver_override", driver)
        if self.driver(address) is not None:
            self.write(self.root / "bus/pci/devices" / address / "driver/unbind", address)
        self.write(self.root / "bus/pci/drivers_probe", address)

    def _bind(self, address: str, driver: str) -> None:
        folder = self.root / "bus/pci/devices" / address
        (folder / "driver").symlink_to(self.root / "bus/pci/drivers" / driver)
        if driver == self._native.get(address) and self._ports[address]:
            port = folder.resolve() / "net" / self._ports[address]
            port.mkdir(parents=True)
            (port / "device").symlink_to(folder.resolve())
            (port / "ifindex").write_text(f"{INDEX}\n")
            (self.root / "class/net").mkdir(parents=True, exist_ok=True)
            (self.root / "class/net" / port.name).symlink_to(port)

    def _unbind(self, address: str) -> None:
        folder = self.root / "bus/pci/devices" / address
        (folder / "driver").unlink()
        if (folder / "net").is_dir():
            for port in (folder / "net").iterdir():
                (self.root / "class/net" / port.name).unlink()
                for entry in port.iterdir():
                    entry.unlink()
                port.rmdir()
            (folder / "net").rmdir()

    def drivers(self, *addresses: str) -> list[str | None]:
        return [self.driver(address) for address in addresses]

    def host(self) -> PciDrivers:
        """What changes drivers on this bus, and does not wait long."""
        return PciDrivers(self.root, self, within_s=0.1)

    def refusal_of_port(self, interface: str) -> tuple[str | None, Device]:
        return self.refusals.get(interface), device(interface, mtu=9000)

    def users_of(self, device: Path) -> list[str]:  # type: ignore[override]
        users, self.ending = [*self.users, *self.ending], []
        return [f"{user} of {device.name}" for user in users]

    def parameters_of_port(self, interface: str) -> Parameters:
        return self.parameters.get(interface, {})

    def restore_port(self, index: int, name: str, before: Binding) -> None:
        self.restored.append((index, name, before.up, before.mtu, before.parameters))
