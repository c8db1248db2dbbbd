"""What is read from /proc and /sys of machines unlike this one: trees of files as their kernels show them."""

import ast
import gzip
import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import accumulate, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.containers import container_facts
from resources.libraries.python.drivers.functions.vm import kvm_facts
from resources.libraries.python.drivers.generators.trex import trex_facts
from resources.libraries.python.drivers.host.nics import device_users
from resources.libraries.python.drivers.host.ownership.processes import process
from resources.libraries.python.testbed.connection.machine import CompletedProgram
from resources.libraries.python.testbed.node import scripts
from resources.libraries.python.testbed.node.facts import MachineFacts, gather
from resources.libraries.python.testbed.node.node_query import MARK, program
from resources.libraries.python.testbed.node.scripts import (
    driver_needs,
    leases,
    leftovers,
    machine,
    noise,
    runtimes,
    tunables,
)
from tests.builders import shell_program
from tests.unit.testbed.node.machine_trees import link, tree
from tests.unit.testbed.node.node_facts import PCI, two_nodes

SENT = sorted(
    [
        *(path for path in Path(scripts.__file__).parent.glob("*.py") if path.name != "__init__.py"),
        *(Path(str(import_module(each.script).__file__)) for each in driver_registry.node_checks()),
        Path(str(device_users.__file__)),
    ]
)


@pytest.mark.parametrize("path", SENT, ids=lambda path: path.stem)
def test_it_needs_the_standard_library_of_any_python_3(path: Path) -> None:
    """Else a node with an old Python would answer with a syntax error instead of its version."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 7))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_a_shell_that_greets_does_not_come_between() -> None:
    text = program({leftovers: dict.fromkeys(("record", "runtimes", "namespaces"), "/nowhere")})
    done = subprocess.run([sys.executable, "-I", "-"], input=text, capture_output=True, check=True)
    said = json.loads((b"Welcome!\n" + done.stdout).decode().rpartition(MARK)[2])
    assert said["answers"]["leftovers"]["in_use"] is False
    assert said["began_s"] <= said["ended_s"]


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_all_users_can_read_records_and_only_the_owner_can_open_locks(tmp_path: Path, umask: int) -> None:
    root, folder = tmp_path / "root", tmp_path / "var" / "generators" / "one"
    tree(root, {"proc/sys/kernel/random/boot_id": "first", "proc/sys/vm/swappiness": "60"})
    holder = {"testbed": "lab", "owner": "ann@here", "pid": 1, "reason": "a test", "heartbeat": True, "token": "x"}
    swappiness = {"root": str(root), "settings": [["/proc/sys/vm/swappiness", "0"]], "by": "ann@here"}
    lease = {"do": "acquire", "lease_s": 60, "directory": str(folder), **holder}
    text = program({leases: lease, tunables: {"do": "apply", "directory": str(folder), **swappiness}})
    subprocess.run([sys.executable, "-I", "-"], input=text, capture_output=True, check=True, umask=umask)
    folders = (tmp_path / "var", folder.parent, folder)
    modes = {path.name: oct(path.stat().st_mode & 0o7777) for path in (*folders, *folder.iterdir())}
    records, locks = ("reservation.json", "prepared.json"), ("reservation.lock", "prepared.lock")
    readable = dict.fromkeys(("var", "generators", "one"), "0o755")
    assert modes == {**readable, **dict.fromkeys(records, "0o644"), **dict.fromkeys(locks, "0o600")}


CPU, NODE = "sys/devices/system/cpu", "sys/devices/system/node"


def server(root: Path) -> Path:
    """Two sockets of two cores of two threads; CPU 7 is off."""
    dmi, idle = "sys/class/dmi/id", f"{CPU}/cpu0/cpuidle"
    files = {
        "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64", "proc/cmdline": "quiet isolcpus=1,5 mitigations=off",
        "proc/uptime": "86400.25 100000.00", "proc/loadavg": "0.52 0.58 0.59 1/467 12345",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nmicrocode\t: 0xd000390\nflags\t: fpu\n\nx : 1",
        "proc/self/status": "Name:\tpython3\nCpus_allowed_list:\t0-6", "proc/1/comm": "systemd",
        "proc/77/comm": "irqbalance", "proc/sys/kernel/numa_balancing": "1",
        "proc/meminfo": "MemTotal:  65536000 kB\nMemAvailable: 32768000 kB\nSwapTotal: 9000 kB\nSwapFree: 8000 kB",
        f"{CPU}/online": "0-6", f"{CPU}/isolated": "1,5", f"{CPU}/nohz_full": "1,5", f"{CPU}/smt/control": "on",
        f"{CPU}/intel_pstate/no_turbo": "0", f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI",
        f"{CPU}/vulnerabilities/mds": "Not affected", f"{idle}/state0/name": "POLL", f"{idle}/state1/name": "C1",
        f"{idle}/state10/name": "C6", f"{idle}/state10/disable": "1", f"{dmi}/bios_vendor": "American Megatrends",
        f"{dmi}/bios_version": "2.1", f"{dmi}/bios_date": "03/14/2018", f"{dmi}/product_name": "SYS-7049GP-TRT",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    }  # fmt: skip
    for cpu in range(7):
        core = cpu % 4
        files |= {
            f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{core},{core + 4}",
            f"{CPU}/cpu{cpu}/topology/physical_package_id": str(core // 2),
            f"{CPU}/cpu{cpu}/node{core // 2}/x": "",
            f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": "powersave" if cpu == 3 else "performance",
        }
    (root / f"{CPU}/cpu7").mkdir(parents=True)
    for node in (0, 1):
        here, pages = f"{NODE}/node{node}", f"{NODE}/node{node}/hugepages/hugepages-2048kB"
        files[f"{here}/meminfo"] = f"Node {node} MemTotal: 32768000 kB\nNode {node} MemFree: 1024000 kB"
        files |= {f"{pages}/nr_hugepages": "1024", f"{pages}/free_hugepages": str(1000 + node)}
    return tree(root, files)


def test_a_server(tmp_path: Path) -> None:
    said = machine.answer({"root": str(server(tmp_path)), "disks": [str(tmp_path / "not/yet"), "/proc"]})
    assert said["distribution"] == "Debian GNU/Linux 12 (bookworm)" and said["kernel"] == "6.1.0-18-amd64"
    assert (said["up_s"], said["load"], said["irqbalance"]) == (86400.25, [0.52, 0.58, 0.59], True)
    cpu = said["cpu"]
    assert (cpu["model"], cpu["microcode"], cpu["hypervisor"]) == ("Intel(R) Xeon(R)", "0xd000390", False)
    assert (cpu["isolated"], cpu["nohz_full"], cpu["smt"], cpu["boost"]) == ("1,5", "1,5", "on", True)
    assert cpu["governors"] == {"performance": [0, 1, 2, 4, 5, 6], "powersave": [3]}
    assert cpu["allowed"] == "0-6"
    assert cpu["rows"] == [[cpu, cpu % 4, cpu % 4 // 2, cpu % 4 // 2] for cpu in range(7)]
    memory = said["memory"]
    assert (memory["total_mb"], memory["available_mb"], memory["swap_used_mb"]) == (64000, 32000, 0)
    assert [node["hugepages"] for node in memory["nodes"]] == [
        [{"size_kb": 2048, "total": 1024, "free": free}] for free in (1000, 1001)
    ]
    assert said["disks"][str(tmp_path / "not/yet")]["total_mb"] > 0


def memory_device(size: int, speed: int, extended: int = 0, kind: int = 0x1A) -> bytes:
    """A structure of SMBIOS for a memory module, as version 2.8 has it, with two texts."""
    row = bytearray(0x28)
    row[0], row[1], row[0x12] = 17, len(row), kind
    row[0x0C:0x0E] = size.to_bytes(2, "little")
    row[0x15:0x17] = (3200).to_bytes(2, "little")
    row[0x1C:0x20] = extended.to_bytes(4, "little")
    row[0x20:0x22] = speed.to_bytes(2, "little")
    return bytes(row) + b"P1-DIMMA1\0Bank 0\0\0"


def test_facts_by_which_equal_servers_differ(tmp_path: Path) -> None:
    root = server(tmp_path)
    (root / "sys/firmware/dmi/tables").mkdir(parents=True)
    other = bytes([0, 4, 0, 0]) + b"\0\0"
    modules = memory_device(0x4000, 2666) * 2 + memory_device(0x7FFF, 0, extended=65_536, kind=0x22)
    (root / "sys/firmware/dmi/tables/DMI").write_bytes(other + modules + memory_device(0, 0) + b"\x11\x28")
    found = MachineFacts.model_validate(machine.answer({"root": str(root)})).settings()
    assert found == {
        "machine": "SYS-7049GP-TRT", "BIOS": "American Megatrends 2.1 03/14/2018",
        "governors": "performance x 6, powersave x 1", "turbo": "on", "idle states": "POLL, C1",
        "memory modules": "2 x 16 GiB DDR4 2666 MT/s, 1 x 64 GiB DDR5 3200 MT/s, 1 x empty slot",
        "NUMA balancing": "on", "transparent huge pages": "madvise", "mitigation of meltdown": "Mitigation: PTI",
    }  # fmt: skip
    said = machine.answer({"root": str(tmp_path / "empty")})
    assert MachineFacts.model_validate(said).settings() == {}
    assert said["kernel"] is said["load"] is said["up_s"] is said["memory"]["total_mb"] is None
    assert said["cpu"]["rows"] == [] and said["cpu"]["boost"] is None and said["cpu"]["governors"] == {}


def config_space(*capabilities: tuple[int, int], present: bool = True) -> bytes:
    """Configuration space with capabilities at 0x40, 0x50, …: number, and upper byte of Device Control."""
    config = bytearray(256)
    config[6], config[0x34] = 0x10 * present, 0x40
    for at, (number, control) in zip(range(0x40, 0x100, 16), capabilities, strict=False):
        config[at], config[at + 1], config[at + 9] = number, at + 16, control
    config[0x40 + 16 * len(capabilities) - 15] = 0
    return bytes(config)


ENDLESS = bytearray(config_space((1, 0)))
ENDLESS[0x41] = 0x40


@pytest.mark.parametrize(
    ("config", "size"),
    [
        (config_space((1, 0), (0x10, 0x2F)), 512), (config_space((0x10, 0x50)), 4096), (config_space((1, 0x50)), None),
        (config_space((0x10, 0x50), present=False), None), (config_space((1, 0), (0x10, 0x50))[:64], None),
        (bytes(ENDLESS), None), (b"", None),
    ],
)  # fmt: skip
def test_cards_and_folder_of_trex(tmp_path: Path, config: bytes, size: int | None) -> None:
    folder = tmp_path / "v3.06"
    (folder / "automation/trex_control_plane/interactive/trex/stl").mkdir(parents=True)
    shell_program(folder / "t-rex-64", "")
    link(tmp_path / "trex", folder)
    devices = tmp_path / "sys/bus/pci/devices"
    for function, driver in enumerate(("mlx5_core", "vfio-pci", "i40e", None)):
        device = devices / f"0000:3b:00.{function}"
        device.mkdir(parents=True)
        (device / "config").write_bytes(config)
        if driver is not None:
            link(device / "driver", tmp_path / "sys/bus/pci/drivers" / driver)
    ports = ["0000:3b:00.0", "0000:3b:00.1", "0000:5e:00.0"]
    said = trex_facts.answer({"directory": str(tmp_path / "trex"), "root": str(tmp_path), "ports": ports})
    assert (said["there"], said["client"], said["version"]) == (True, True, "v3.06")
    none = trex_facts.answer({"directory": str(tmp_path / "sys")})
    assert (none["there"], none["client"], none["version"]) == (False, False, None)
    assert said["ports"] == {
        "0000:3b:00.0": {"driver": "mlx5_core", "read_request_bytes": size},
        "0000:3b:00.1": {"driver": "vfio-pci", "read_request_bytes": size},
    }
    assert said["neighbours"] == {"0000:3b:00.2": "i40e", "0000:3b:00.3": None}


def test_a_program_says_its_version_or_why_not(tmp_path: Path) -> None:
    runs = str(shell_program(tmp_path / "vpp", "echo vpp v25.06-release built by root"))
    fails = str(shell_program(tmp_path / "broken", "echo libvnet.so: not found >&2; exit 127"))
    said = driver_needs.answer({"programs": dict.fromkeys((runs, fails), r"vpp v?(\S+)")})["programs"]
    assert said[runs] == {"there": True, "version": "25.06-release", "problem": None}
    assert said[fails] == {"there": True, "version": None, "problem": "ended with 127: libvnet.so: not found"}


@pytest.mark.parametrize(
    ("reply", "version", "problem"),
    [(b'{"Version": "27.1.1"}', "27.1.1", "None"), (b"hello", None, "JSONDecodeError"), (None, None, "no engine runs")],
)
def test_docker_is_asked_and_not_only_found(
    tmp_path: Path, reply: bytes | None, version: str | None, problem: str
) -> None:
    path, listener = tmp_path / "docker.sock", socket.socket(socket.AF_UNIX)

    def serve(reply: bytes) -> None:
        with listener.accept()[0] as client:
            client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(reply) + reply)

    with listener, ThreadPoolExecutor() as pool:
        if reply is not None:
            listener.bind(str(path))
            listener.listen()
            pool.submit(serve, reply)
        said = container_facts.answer({"docker": str(path)})["docker"]
    assert said["version"] == version and problem in str(said["problem"])


def test_kvm_that_is_no_kvm(tmp_path: Path) -> None:
    device = tree(tmp_path, {"kvm": ""}) / "kvm"
    said = kvm_facts.answer({"kvm": str(device)})
    assert (said["there"], said["usable"]) == (True, False) and said["problem"]
    assert kvm_facts.answer({"kvm": str(tmp_path / "none")})["there"] is False


def test_leftovers_are_what_is_on_record_and_exists(tmp_path: Path) -> None:
    start = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    me = {"pid": os.getpid(), "start_ticks": start, "command": "pytest"}
    record = {
        "owner": {**me, "start_ticks": start + 1}, "user": "ann", "since": "2026-11-21T10:00:00+00:00",
        "namespaces": {"csit-a": 1, "csit-gone": 2},
        "workers": [{**me, "command": ""}, {**me, "start_ticks": start + 1}],  # read during exec
        "groups": [f"{tmp_path}/groups/csit-edge-1", f"{tmp_path}/groups/csit-gone-1"],
        "folders": [f"{tmp_path}/service", f"{tmp_path}/no-service"],
        "settings": {"net/core/netdev_budget": "300"},
        "ports": [{"device": "eth1", "home": None, "mtu": 1500, "parameters": {"ring sizes": [512, 0, 0, 512]}}],
    }  # fmt: skip
    tree(tmp_path, {"record/owner.json": json.dumps(record), "record/lock": "", "runtimes/abc/x": "y" * 3_000_000})
    empty = ("netns/csit-a", "netns/csit-b", "netns/other", "groups/csit-edge-1/cgroup.procs", "service/install.sh")
    tree(tmp_path, dict.fromkeys(empty, ""))
    asked = {name: str(tmp_path / name) for name in ("record", "runtimes")} | {"namespaces": str(tmp_path / "netns")}
    said = leftovers.answer(asked)
    assert said["owner"]["alive"] is False and said["in_use"] is False
    assert said["namespaces"] == ["csit-a"] and said["unclaimed"] == ["csit-b"]
    assert said["processes"] == [{"pid": os.getpid(), "command": process(os.getpid()).command}]
    assert said["groups"] == [f"{tmp_path}/groups/csit-edge-1"] and said["folders"] == [f"{tmp_path}/service"]
    assert said["ports"] == ["device eth1, mtu 1500"] and said["settings"] == {"net/core/netdev_budget": "300"}
    assert said["runtimes"][0]["name"] == "abc" and said["runtimes"][0]["mb"] == 2
    (tmp_path / "record/owner.json").write_text("[]", encoding="utf-8")
    assert "is no record of this program" in leftovers.answer(asked)["problem"]


def test_a_lock_that_is_held_is_seen_without_taking_it(tmp_path: Path) -> None:
    lock = tree(tmp_path, {"lock": ""}) / "lock"
    code = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print(flush=True); input()"
    argv = [sys.executable, "-c", code, str(lock)]
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    holder.stdout.readline()
    asked = {"record": str(tmp_path), "runtimes": "/nowhere", "namespaces": "/nowhere"}
    assert leftovers.answer(asked)["in_use"] is True
    holder.communicate(b"\n")
    assert leftovers.answer(asked)["in_use"] is False


def test_only_runtimes_are_removed(tmp_path: Path) -> None:
    tree(tmp_path, {"runtimes/abc/x": "", "runtimes/def/x": "", "other/x": ""})
    folder = tmp_path / "runtimes"
    assert runtimes.answer({"folder": str(folder), "names": ["abc", "gone"]}) == {"removed": ["abc"]}
    assert "no name" in runtimes.answer({"folder": str(folder), "names": ["../other"]})["failed"]
    assert (folder / "def/x").exists() and (tmp_path / "other/x").exists()
    (tmp_path / "link").symlink_to(folder)
    assert "symbolic link" in runtimes.answer({"folder": str(tmp_path / "link"), "names": ["def"]})["failed"]
    assert (folder / "def/x").exists()


_LISTING = "lib/modules/6.1.0/modules.dep"


@pytest.mark.parametrize(
    ("files", "has"),
    [
        ({"proc/config.gz": gzip.compress(b"CONFIG_VHOST_NET=y\n")}, True),
        ({"proc/config.gz": gzip.compress(b"CONFIG_XDP_SOCKETS=y\n")}, False),
        ({"sys/module/vhost_net/x": ""}, True),
        ({_LISTING: "kernel/drivers/vhost/vhost-net.ko.xz:"}, True),
        ({_LISTING: "kernel/net/bridge/bridge.ko:"}, False),
        ({"lib/modules/6.1.0/modules.builtin": "kernel/drivers/vhost/vhost_net.ko", _LISTING: ""}, True),
        ({"boot/config-6.1.0": "CONFIG_VHOST_NET=y", _LISTING: ""}, True),
        ({"boot/config-6.1.0": "CONFIG_VHOST_NET=m"}, True),
        ({"boot/config-6.1.0": "CONFIG_VHOST_NET=m", _LISTING: ""}, False),
        ({"boot/config-6.1.0": "# CONFIG_VHOST_NET is not set\nCONFIG_VHOST_NETX=y"}, False),
        ({"boot/config-5.4.0": "CONFIG_VHOST_NET=y"}, None),
    ],
)
def test_features_of_the_kernel(files: dict[str, str | bytes], has: bool | None, tmp_path: Path) -> None:
    root = tree(tmp_path, {"proc/sys/kernel/osrelease": "6.1.0\n", **files})
    asked = {"root": str(root), "kernel": {"vhost-net": ("VHOST_NET", "vhost_net")}}
    assert driver_needs.answer(asked)["kernel"] == {"vhost-net": has}


def test_all_facts_come_in_one_round_trip() -> None:
    """The answers of drivers' own checks are beside those of the testbed's."""
    topology = two_nodes(dut={"vms": "qemu", "container": {"engine": "auto"}})

    def run(argv: list[str], *, stdin: bytes, within_s: float, root: bool) -> CompletedProgram:
        assert root
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=within_s, check=True)
        return CompletedProgram(done.returncode, done.stdout.decode(), "")

    here: Any = SimpleNamespace(name="here", run=run)
    found = gather(here, topology.nodes.values(), sys.executable)
    assert set(found.packages) >= {"container_facts", "kvm_facts", "trex_facts"}
    assert found.packages["trex_facts"]["directory"] == "/opt/trex"
    assert found.device_users.users == dict.fromkeys(PCI, ())
    assert {"tun and tap devices", "vhost-net"} <= set(found.driver_needs.kernel)


STEP_NS = 100


@given(st.lists(st.integers(noise.THRESHOLD_NS, 10**7), max_size=30))
def test_every_gap_is_counted_in_its_class(gaps: list[int]) -> None:
    steps = [step for gap in gaps for step in (STEP_NS, gap)]
    readings = accumulate([0, *steps, *repeat(STEP_NS, 3)])
    durations, longest = noise._gaps(lambda: next(readings), sum(steps) + STEP_NS)
    assert longest == max(gaps, default=0)
    assert sum(count for _, count in durations) == len(gaps)
    for edge, count in durations:
        inside = [gap for gap in gaps if edge <= gap < edge * 9 / 8]
        assert len(inside) >= count and edge.bit_length() >= 4


def test_counters_of_the_kernel_are_those_of_the_cpu(tmp_path: Path) -> None:
    def write(ticks: int, timer: int, nic: int, stolen: int) -> dict[str, object]:
        interrupts = f"CPU0 CPU1\n  24: 7 {nic}   PCI-MSI-0000:00:02.0   1-edge      eth0-rx\n"
        interrupts += f" LOC:     1      {timer}   Local timer interrupts\n ERR:     0"
        stat = f"cpu  1 2\ncpu1 {ticks} 0 0 0 0 0 0 {stolen} 0 0"
        return noise._accounts(tree(tmp_path, {"proc/stat": stat, "proc/interrupts": interrupts}), [1])[1]

    found = noise._difference(write(1, 10, 5, 100), write(2, 35, 6, 150))
    interrupts = {"Local timer interrupts": 25, "24 PCI-MSI-0000:00:02.0 1-edge eth0-rx": 1}
    assert found == {"interrupts": interrupts, "stolen_s": 0.5, "smis": None}
    empty = noise._accounts(tmp_path / "none", [3])[3]
    assert noise._difference(empty, empty) == {"interrupts": {}, "stolen_s": None, "smis": None}
