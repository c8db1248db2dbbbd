"""PCI ports in a folder: facts, drivers, and parameters that a driver forgets; the driver with those is a fake."""

import ctypes
import errno
import fcntl
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from resources.libraries.python.drivers.host.nics import ethtool, nic_driver
from resources.libraries.python.drivers.host.nics import port_inventory as ports
from resources.libraries.python.drivers.host.nics.device_users import users
from resources.libraries.python.drivers.host.nics.ethtool import CHANGED_WITH_QUEUES, parameters, restore_parameters
from resources.libraries.python.drivers.host.nics.nic_driver import USER_SPACE, Binding, Surroundings
from resources.libraries.python.errors import ConfigError, CsitError, NotReady, Unsupported
from tests.unit.drivers.host.fake_pci import INDEX, MAC, FakePci, device
from tests.unit.testbed.node.machine_trees import tree

PORT = "0000:3b:00.0"
OTHER = "0000:3b:00.1"


@pytest.fixture
def pci(tmp_path: Path) -> FakePci:
    pci = FakePci(tmp_path, "i40e", USER_SPACE)
    pci.add(PORT, "i40e", port="nosuch0", group=7)
    return pci


RING_SIZES = {"ring sizes": (512, 0, 0, 512)}


def test_a_port_goes_to_user_space_and_back(pci: FakePci) -> None:
    host = pci.host()
    binding = host.look(PORT)
    was = {"device": "nosuch0", "up": True, "mtu": 9000, "mac": MAC}
    assert binding == Binding(pci_address=PORT, driver="i40e", override=None, **was)
    assert not pci.written  # looking changes nothing
    host.bind(binding)
    assert (pci.driver(PORT), pci.override(PORT)) == (USER_SPACE, USER_SPACE)
    assert [line.split()[0].rsplit("/", 1)[1] for line in pci.written] == ["driver_override", "unbind", "drivers_probe"]
    assert not (pci.root / "class/net/nosuch0").exists()
    assert host.restore(binding) == [f"gave PCI port {PORT} back to i40e"]
    assert (pci.driver(PORT), pci.override(PORT)) == ("i40e", "(null)")
    assert pci.restored == [(INDEX, "nosuch0", True, 9000, {})]
    assert host.restore(binding) == []  # safe to repeat
    # The VPP of the last cell may be about to end, where ports stay with vfio-pci in between.
    pci.rebind(PORT, USER_SPACE)
    pci.ending.append("pid 17 (vpp)")
    assert pci.host().look(PORT).driver == USER_SPACE


def test_a_port_that_was_given_back_by_half_gets_its_name_settings_and_state(pci: FakePci) -> None:
    """Killed when the driver was back, and the port, which is a new one, down with the settings of its driver."""
    host = pci.host()
    pci.parameters["nosuch0"] = RING_SIZES
    binding = Binding.model_validate_json(host.look(PORT).model_dump_json())
    host.bind(binding)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pci, "restore_port", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            host.restore(binding)
    assert (pci.driver(PORT), pci.restored) == ("i40e", [])
    assert host.restore(binding) == []
    assert pci.restored == [(INDEX, "nosuch0", True, 9000, RING_SIZES)]


def test_a_port_without_a_driver_or_reserved_for_one_is_so_afterwards(pci: FakePci) -> None:
    pci.add(OTHER, None, group=8)
    (pci.root / "bus/pci/devices" / PORT / "driver_override").write_text("i40e\n")
    host = pci.host()
    bindings = [host.look(address) for address in (OTHER, PORT)]
    assert (bindings[0].driver, bindings[0].device) == (None, None)
    for binding in bindings:
        host.bind(binding)
    assert pci.drivers(OTHER, PORT) == [USER_SPACE] * 2
    assert host.restore(bindings[0]) == [f"gave PCI port {OTHER} back to no driver"]
    host.restore(bindings[1])
    assert (pci.driver(OTHER), pci.driver(PORT), pci.override(PORT)) == (None, "i40e", "i40e")


def test_a_binding_that_was_cut_short_is_restored(pci: FakePci) -> None:
    """Killed between any two writes: whatever there is then, the record is enough to put it right."""
    for steps in range(4):
        host = pci.host()
        binding = Binding.model_validate_json(host.look(PORT).model_dump_json())
        writes = [("driver_override", USER_SPACE), ("driver/unbind", PORT), ("../../drivers_probe", PORT)]
        for name, value in writes[:steps]:
            folder = pci.root / "bus/pci/devices" / PORT
            path = pci.root / "bus/pci/drivers_probe" if name.endswith("probe") else folder / name
            pci.write(path, value)
        host.restore(binding)
        assert (pci.driver(PORT), pci.override(PORT)) == ("i40e", "(null)")


def test_what_is_no_free_network_port_is_refused(pci: FakePci) -> None:
    host = pci.host()
    with pytest.raises(ConfigError, match=r"no PCI device 0000:99:00.0"):
        host.look("0000:99:00.0")
    folder = pci.add("0000:00:1f.2", None, group=1)
    (folder / "class").write_text("0x010601\n")
    with pytest.raises(ConfigError, match=r"0000:00:1f\.2 is no network device \(PCI class 0x010601\)"):
        host.look("0000:00:1f.2")
    pci.refusals["nosuch0"] = "has the default route"
    with pytest.raises(ConfigError, match="nosuch0 has the default route: it may be what this machine is reached by"):
        host.look(PORT)
    assert not pci.written
    pci.refusals.clear()
    numbers = pci.root / "bus/pci/devices" / PORT / "sriov_numvfs"
    numbers.write_text("8\n")
    with pytest.raises(ConfigError, match=f"^{PORT} has 8 virtual functions already, which are not ours; .*echo 0 > "):
        pci.host().look(PORT)
    assert not pci.written
    numbers.write_text("0\n")
    assert pci.host().look(PORT).driver == "i40e"


def test_without_an_iommu_only_where_that_was_allowed(pci: FakePci, caplog: pytest.LogCaptureFixture) -> None:
    pci.add(OTHER, "i40e", port="nosuch1")
    with pytest.raises(Unsupported, match=f"{OTHER} is behind no IOMMU; boot with intel_iommu=on"):
        pci.host().look(OTHER)
    parameter = pci.root / "module/vfio/parameters/enable_unsafe_noiommu_mode"
    parameter.parent.mkdir(parents=True)
    parameter.write_text("Y\n")
    binding = pci.host().look(OTHER)
    pci.host().bind(binding)
    assert "without an IOMMU: nothing protects memory" in caplog.text


def test_an_idle_driver_is_waited_for_and_a_used_port_kept(pci: FakePci, monkeypatch: pytest.MonkeyPatch) -> None:
    host = pci.host()
    binding = host.look(PORT)
    with monkeypatch.context() as patched:
        patched.setattr(pci, "_bind", lambda *_: None)
        with pytest.raises(NotReady, match=rf"driver vfio-pci of {PORT} not ready after 0\.1 s; .*: it has no driver"):
            host.bind(binding)
    host.bind(binding)
    pci.users.append("pid 17 (vpp)")
    with pytest.raises(CsitError, match=rf"{PORT} is in use by pid 17 \(vpp\) of {PORT}; end it first"):
        host.restore(binding)
    assert pci.driver(PORT) == USER_SPACE
    pci.users.clear()
    host.restore(binding)
    assert pci.driver(PORT) == "i40e"


@pytest.mark.parametrize("driver", [USER_SPACE, "igb_uio", "uio_pci_generic"])
def test_a_port_that_a_program_has_already_is_refused(pci: FakePci, driver: str) -> None:
    if driver != USER_SPACE:
        pci.add_driver(driver)
    pci.rebind(PORT, driver)
    pci.written.clear()
    pci.users.append("pid 17 (/usr/bin/vpp -c /etc/vpp/startup.conf)")
    with pytest.raises(ConfigError, match=rf"^{PORT} is in use by pid 17 \(/usr/bin/vpp -c .*systemctl disable"):
        pci.host().look(PORT, driver)
    assert not pci.written
    pci.users.clear()
    assert pci.host().look(PORT, driver).driver == driver


def kernel(monkeypatch: pytest.MonkeyPatch, pci: FakePci, name: str, mac: str = MAC) -> list[str]:
    """Restore ports by netlink, to which one is known besides the loopback device; return what is asked of it."""
    done: list[str] = []
    known = {"lo": device("lo", 1, mac=""), name: device(name, mac=mac, up=False)}
    note = lambda requests: done.extend(each.what for each in requests)  # noqa: E731
    netlink = SimpleNamespace(socket=None, close=lambda: None, do=note)
    monkeypatch.setattr(nic_driver, "Netlink", lambda: netlink)
    monkeypatch.setattr(nic_driver, "devices", lambda _: known)
    monkeypatch.setattr(nic_driver, "_RENAMED_S", 0.0)
    monkeypatch.setattr(ethtool, "restore_parameters", lambda *_: None)
    monkeypatch.setattr(pci, "restore_port", Surroundings.restore_port)
    return done


@pytest.mark.parametrize(("called", "renames"), [("enp59s0f1", False), ("eth1", True)])
def test_udev_may_rename_a_port(pci: FakePci, monkeypatch: pytest.MonkeyPatch, called: str, renames: bool) -> None:
    """The kernel's name is read from sysfs as eth0; before netlink is asked for it the port has another name."""
    pci.add(OTHER, "i40e", port="eth0", group=8)
    host, done = pci.host(), kernel(monkeypatch, pci, called)
    binding = host.look(OTHER).model_copy(update={"device": "enp59s0f1"})
    host.bind(binding)
    assert host.restore(binding) == [f"gave PCI port {OTHER} back to i40e"]
    renamed = ["bring eth1 down", "call eth1 enp59s0f1"] if renames else []
    assert done == [*renamed, "give enp59s0f1 an MTU of 9000", "bring enp59s0f1 up"]


def test_settings_are_given_back_before_the_port_is_up(pci: FakePci, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual function may have another MAC each time that its driver gets it, and offloads are the driver's own."""
    done, restored = kernel(monkeypatch, pci, "nosuch0", "02:00:00:00:00:99"), list[object]()
    monkeypatch.setattr(ethtool, "restore_parameters", lambda *given: restored.append((given[2], list(done))))
    pci.parameters["nosuch0"] = {"offloads": (3, 0)}
    host = pci.host()
    seen = host.look(PORT).model_copy(update={"promiscuous": True})
    binding = Binding.model_validate_json(seen.model_dump_json())  # as the next run reads it after a kill
    host.bind(binding)
    host.restore(binding)
    moved = [f"give nosuch0 the MAC {MAC}", "give nosuch0 an MTU of 9000"]
    assert done == [*moved, "make nosuch0 promiscuous", "bring nosuch0 up"]
    assert restored == [({"offloads": (3, 0)}, moved)]


def test_facts_of_a_port_which_has_no_name_in_user_space(pci: FakePci) -> None:
    device = pci.root / "bus/pci/devices" / PORT
    assert (ports.device_at(PORT, pci.root), ports.index_at(PORT, pci.root)) == ("nosuch0", INDEX)
    assert ports.pci_ids(PORT, pci.root) == ("0x8086", "0x1572")
    assert (ports.numa_node_of(PORT, None, pci.root), ports.driver_of(device), ports.group_of(device)) == (1, "i40e", 7)
    assert ports.numa_node_of("0000:99:00.0", None, pci.root) is None
    assert ports.pci_ids("0000:99:00.0", pci.root) == (None, None)
    pci.rebind(PORT, "vfio-pci")
    assert (ports.driver_of(device), ports.numa_node_of(PORT, None, pci.root)) == ("vfio-pci", 1)
    assert (ports.device_at(PORT, pci.root), ports.index_at(PORT, pci.root)) == (None, None)


def has_open(root: Path, pid: int, command: str, *files: str) -> None:
    tree(root, {f"proc/{pid}/cmdline": command.replace(" ", "\0")})
    (root / f"proc/{pid}/fd").mkdir()
    for number, file in enumerate(("/dev/null", *files)):
        (root / f"proc/{pid}/fd/{number}").symlink_to(file)


def test_users_of_a_pci_device_are_found(pci: FakePci) -> None:
    """By its IOMMU group, by vfio's own file of a device (Linux 6.2), and by uio, which many can have at once."""
    device, proc = pci.root / "bus/pci/devices" / PORT, pci.root / "proc"
    has_open(pci.root, 300, "vpp -c startup.conf", "/dev/vfio/vfio", "/dev/vfio/7")
    has_open(pci.root, 20, "other", "/dev/vfio/77", "/dev/vfio/devices/vfio1", "/dev/uio30")
    tree(pci.root, {"proc/stat": "cpu", "proc/4/cmdline": "ended"})
    assert users(device, proc) == [(300, "vpp -c startup.conf")]
    has_open(pci.root, 21, "by noiommu", "/dev/vfio/noiommu-7")
    assert [pid for pid, _ in users(device, proc)] == [21, 300]
    apart = pci.add("0000:3b:00.1", None)
    assert users(apart, proc) == []
    (apart / "vfio-dev/vfio1").mkdir(parents=True)
    assert users(apart, proc) == [(20, "other")]
    (apart / "uio/uio3").mkdir(parents=True)
    has_open(pci.root, 22, "testpmd", "/dev/uio3")
    has_open(pci.root, 23, "_t-rex-64", "/dev/uio3")
    assert [pid for pid, _ in users(apart, proc)] == [20, 22, 23]


QUEUES, RINGS, COALESCING, PAUSE, FEATURES = 0x3C, 0x10, 0x0E, 0x12, 0x3A
FRESH = {
    QUEUES: (0, 0, 1, 8, 0, 0, 1, 8),
    RINGS: (4096, 0, 0, 4096, 512, 0, 0, 512),
    COALESCING: (50, *[0] * 8, 1, 1, *[0] * 11),
    PAUSE: (1, 1, 1),
}
TUNED = {
    "queues": (0, 0, 1, 4),
    "ring sizes": (2048, 0, 0, 1024),
    "interrupt coalescing": (8, *[0] * 21),
    "pause frames": (0, 0, 0),
    "offloads": (0b0001, 0),
}


class PortDriver:
    """A driver of a NIC (include/uapi/linux/ethtool.h) whose interrupts are new when the number of queues changes."""

    def __init__(self) -> None:
        self.values = dict(FRESH)
        self.lacks: set[int] = set()
        self.refuses: set[int] = set()
        self.features = [[0b1011, 0b1110, 0b1110, 0b0100], [1, 1, 1, 0]]
        """Blocks of available, requested, active and fixed features."""
        self.negotiates = False
        """Whether it refuses to change autoneg of pause frames, as i40e and ice do."""
        self.set: list[int] = []

    def ioctl(self, _: socket.socket, request: int, argument: bytes) -> None:
        assert request == 0x8946
        name, address = struct.unpack("16sQ16x", argument)
        assert name.rstrip(b"\0") == b"ens1f0"
        (command,) = struct.unpack("=I", ctypes.string_at(address, 4))
        kind = command if command in (*FRESH, FEATURES) else command - 1
        if kind in self.lacks:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        if kind == FEATURES:
            self._features(address, wants=kind != command)
            return
        body = struct.Struct(f"={1 + len(FRESH[kind])}I")
        if kind == command:
            ctypes.memmove(address, body.pack(command, *self.values[kind]), body.size)
            return
        if kind in self.refuses:
            raise OSError(errno.EINVAL, "Invalid argument")
        wanted = body.unpack(ctypes.string_at(address, body.size))[1:]
        if kind == PAUSE and self.negotiates and wanted[0] != FRESH[PAUSE][0]:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        self.set.append(kind)
        self.values[kind] = wanted
        if kind == QUEUES:
            self.values[COALESCING] = FRESH[COALESCING]

    def _features(self, address: int, *, wants: bool) -> None:
        """Two blocks, of as many as the caller has space for."""
        if not wants:
            words = [word for block in self.features for word in block]
            ctypes.memmove(address, struct.pack("=10I", FEATURES, 2, *words), 40)
            return
        count, *words = struct.unpack("=5I", ctypes.string_at(address + 4, 20))
        assert count == 2, "the kernel takes all of its blocks only"
        self.set.append(FEATURES)
        for block, valid, wanted in zip(self.features, words[::2], words[1::2], strict=True):
            assert not valid & ~block[0], "what cannot be switched is refused"
            block[1] = block[1] & ~valid | wanted & valid


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> PortDriver:
    made = PortDriver()
    monkeypatch.setattr(fcntl, "ioctl", made.ioctl)
    return made


@pytest.fixture
def where() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        yield handle


def test_what_a_driver_forgets_is_set_back_queues_first(driver: PortDriver, where: socket.socket) -> None:
    restore_parameters(where, "ens1f0", dict(reversed(TUNED.items())))
    assert parameters(where, "ens1f0") == TUNED
    assert driver.set == [QUEUES, RINGS, COALESCING, PAUSE, FEATURES]
    assert [block[1] for block in driver.features] == [0b0101, 0], "what cannot be switched stays"
    assert driver.values[RINGS][:4] == FRESH[RINGS][:4], "maxima are the driver's"
    restore_parameters(where, "ens1f0", TUNED)
    assert len(driver.set) == 5, "what is right is not set again: a change of queues may cut the link"
    driver.lacks = {RINGS, PAUSE, FEATURES}
    assert set(parameters(where, "ens1f0")) == {"queues", "interrupt coalescing"}


def test_parameters_that_new_queues_change_are_set_back(driver: PortDriver, where: socket.socket) -> None:
    restore_parameters(where, "ens1f0", TUNED)
    before = parameters(where, "ens1f0", CHANGED_WITH_QUEUES)
    assert before == {kind: TUNED[kind] for kind in CHANGED_WITH_QUEUES}
    for count in (1, 4):  # for a run, and back
        now = ethtool.channels(where, "ens1f0")
        assert now is not None
        ethtool.set_channels(where, "ens1f0", now.with_counts(0, 0, count))
    assert driver.values[COALESCING] == FRESH[COALESCING]
    restore_parameters(where, "ens1f0", before)
    assert parameters(where, "ens1f0") == TUNED


def test_pause_frames_are_set_back(driver: PortDriver, where: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    driver.negotiates = True
    restore_parameters(where, "ens1f0", {"pause frames": TUNED["pause frames"]})
    assert driver.values[PAUSE] == (1, 0, 0)
    driver.set.clear()
    restore_parameters(where, "ens1f0", {"pause frames": (0, 0, 0)})
    assert not driver.set, "nothing but the negotiation differs"
    assert not caplog.records


def test_what_is_refused_is_named(driver: PortDriver, where: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    driver.refuses = {RINGS}
    restore_parameters(where, "ens1f0", {**TUNED, "pause frames": (0, 0), "offloads": (1,)})
    kept = ("ring sizes of ens1f0 could not be set back to (2048, 0, 0, 1024)", "pause frames of", "offloads of ens1f0")
    assert all(record.message.startswith(each) for record, each in zip(caplog.records, kept, strict=True))
    assert driver.set == [QUEUES, COALESCING]
