"""What virtual machines are made of, as far as it needs no machine."""

import hashlib
import json
import lzma
import os
import socket
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.vm import NICS, Vm, guest_kernel_facts, image
from resources.libraries.python.drivers.functions.vm.accelerator import AcceleratorChoice, check_kernel, choose
from resources.libraries.python.drivers.functions.vm.archive import cpio, file, folder
from resources.libraries.python.drivers.functions.vm.driver import place_workers
from resources.libraries.python.drivers.functions.vm.guest import Console
from resources.libraries.python.drivers.functions.vm.image import fetch, unpacked_kernel, write
from resources.libraries.python.drivers.functions.vm.init import READY, command_line, render_init
from resources.libraries.python.drivers.functions.vm.qemu import GuestNic, Hardware, Monitor, arguments
from resources.libraries.python.errors import CommandFailed, ConfigError, CsitError, NotReady, Unsupported
from resources.libraries.python.model.findings import Severity
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.shared.choices import choices, chosen_topology, rerun_of
from resources.libraries.python.unpacking import UnpackError
from tests.builders import TOPOLOGIES, cpus, plan_of, raising, shell_program
from tests.unit.drivers.functions.guest_parts import unpacked
from tests.unit.testbed.node.machine_trees import tree

BOOT = Path("vmlinuz"), Path("initramfs.cpio")


def test_an_archive_has_every_file_with_its_mode_whatever_its_length() -> None:
    contents = [b"x" * length for length in range(9)]
    archive = cpio([folder("bin"), *(file(f"bin/{'n' * len(c)}", c, executable=len(c) > 4) for c in contents)])
    assert unpacked(archive) == {
        "bin": (0o040755, b""),
        **{f"bin/{'n' * len(c)}": (0o100755 if len(c) > 4 else 0o100644, c) for c in contents},
    }


def test_the_init_script_is_valid_and_has_all_that_is_planned() -> None:
    script = render_init(["virtio_ring", "virtio_net"])
    assert script.index("insmod /modules/virtio_ring.ko") < script.index("insmod /modules/virtio_net.ko")
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    function = plan_of("local", "VSC", 1, 2, cpus(8)).functions[1]
    words = command_line(function, 9000, ((0,), (1, 0))).split()
    for side, vcpu in ((function.left, "0"), (function.right, "1:0")):
        hop = side.route
        wanted = (side.name, side.mac, side.address, hop.prefix, hop.address, hop.mac, 9000, vcpu)
        assert f"csit.port={','.join(map(str, wanted))}" in words
    # The kernel takes 2,047 bytes.
    assert len(" ".join(words)) < 1000


MAC = "52:54:00:00:01:01"

ON_TAP = GuestNic(MAC, 11, 9000)

SHARING = GuestNic(MAC, None, 1500, socket=Path("/run/v.sock"), queues=2)

AT = f",netdev=net1,addr=0x11,mac={MAC},"


@pytest.mark.parametrize(
    ("nic", "accelerator", "backend", "device", "without"),
    [
        (ON_TAP, "tcg", "tap,id=net1,fd=11", f"virtio-net-pci{AT}host_mtu=9000,", "mq=on"),
        (replace(ON_TAP, vhost=9), "kvm", "tap,id=net1,fd=11,vhost=on,vhostfd=9", f"virtio-net-pci{AT}host_mtu", "mq="),
        (replace(ON_TAP, model=NICS["e1000"]), "tcg", "tap,id=net1,fd=11", f"e1000{AT}romfile=", "mtu"),
        (SHARING, "kvm", "vhost-user,id=net1,chardev=vhost1,queues=2", f"{AT}mq=on,vectors=6,", "mtu"),
        (SHARING, "tcg", "vhost-user,id=net1,chardev=vhost1,queues=2", f"{AT}mq=on,vectors=0,", "mtu"),
        (replace(SHARING, queues=1), "kvm", "vhost-user,id=net1,chardev=vhost1", f"virtio-net-pci{AT}rx", "mq=on"),
    ],
)
def test_a_network_card_has_its_planned_mac_and_the_options_of_its_model_and_of_its_end_on_the_host(
    nic: GuestNic, accelerator: str, backend: str, device: str, without: str
) -> None:
    second = GuestNic("52:54:00:00:01:02", 12, 1500)
    argv = arguments("nf", Hardware(accelerator, 128, 2, (nic, second)), BOOT, "quiet", 5)
    assert (argv[argv.index("-smp") + 1], argv[argv.index("-append") + 1]) == ("2", "quiet")
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "-netdev"] == [backend, "tap,id=net2,fd=12"]
    first, other = (argv[at + 1] for at, word in enumerate(argv) if word == "-device")
    assert device in first and without not in first
    assert other.startswith("virtio-net-pci,netdev=net2,addr=0x12,mac=52:54:00:00:01:02,host_mtu=1500,")
    assert {"-S", "socket,id=monitor,fd=5"} <= set(argv), "the guest waits for `cont`"
    words = {"kvm": ("kvm", "host"), "tcg": ("tcg,thread=multi", "qemu64")}[accelerator]
    assert (argv[argv.index("-accel") + 1], argv[argv.index("-cpu") + 1]) == words


def test_memory_of_huge_pages_is_shared_and_of_the_node_of_the_ports() -> None:
    argv = arguments("nf", Hardware("kvm", 1500, 1, huge_page_mb=1024, numa_node=1), BOOT, "")
    assert argv[argv.index("-m") + 1] == "2048"
    assert argv[argv.index("-object") + 1] == (
        "memory-backend-memfd,id=memory,size=2048M,share=on,hugetlb=on,hugetlbsize=1024M,prealloc=on,"
        "host-nodes=1,policy=bind"
    )
    assert argv[argv.index("-machine") + 1].endswith("memory-backend=memory")
    assert "-S" not in argv


def test_kvm_is_taken_where_a_guest_boots_and_the_trial_is_made_once_per_start_of_the_machine(tmp_path: Path) -> None:
    memory, never = tmp_path / "accelerator.json", raising(AssertionError("a guest was booted"))
    memory.write_text("{", encoding="utf-8")  # damaged: as none
    assert choose("auto", "6.1", memory, lambda: "", "boot 1").accelerator == "kvm"
    assert choose("auto", "6.1", memory, never, "boot 1").accelerator == "kvm"
    fallen = choose("auto", "6.1", memory, lambda: "it hangs for 20 s", "boot 2")
    assert fallen == AcceleratorChoice(accelerator="tcg", why="no guest boots with KVM here: it hangs for 20 s")
    assert choose("auto", "6.1", memory, never, "boot 2") == fallen
    assert choose("auto", "6.2", memory, lambda: "", "boot 2").accelerator == "kvm"
    assert choose("tcg", "6.1", memory, never, "boot 3").accelerator == "tcg"
    with pytest.raises(Unsupported, match="/dev/kvm: No such file"):
        choose("kvm", "6.1", memory, lambda: "/dev/kvm: No such file", "boot 3")


def test_an_error_quotes_the_end_of_the_console_and_the_reason_of_a_panic(tmp_path: Path) -> None:
    console = Console(tmp_path / "console")
    assert console.tail() == "nothing on the console"
    lines = ["\x1b[2Jbooting", "Kernel panic - not syncing: no init", *(f"register {n}" for n in range(40))]
    console.path.write_text("\r\n".join(lines), encoding="utf-8")
    assert console.tail().splitlines()[0] == "Kernel panic - not syncing: no init"
    assert console.tail().splitlines()[-1] == "register 39"
    assert "\x1b" not in console.text()
    assert not console.ready
    console.path.write_text(f"{READY} after 1 s\n", encoding="utf-8")
    assert console.ready


def test_the_monitor_finds_its_answer_among_events_and_passes_refusals_on() -> None:
    near, far = socket.socketpair()
    greeting = {"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": "Debian"}}}
    event, refusal = {"event": "RESUME"}, {"error": {"desc": "no such command"}}
    for message in (greeting, {"return": {}}, event, {"return": "paused"}, refusal):
        far.sendall(json.dumps(message).encode() + b"\r\n")
    monitor = Monitor("nf-1-1", near)
    assert monitor.version == "7.2.22 Debian"
    assert monitor.ask("query-status") == "paused"
    with pytest.raises(CommandFailed, match="nf-1-1: no such command"):
        monitor.ask("bad")
    monitor.close()
    with far, far.makefile() as asked:
        assert [json.loads(line)["execute"] for line in asked] == ["qmp_capabilities", "query-status", "bad"]


def test_a_monitor_that_closes_or_is_silent_is_named() -> None:
    near, far = socket.socketpair()
    with near, far, pytest.raises(NotReady, match="monitor of nf-1-1"):
        Monitor("nf-1-1", near, within_s=0.05)
    near, far = socket.socketpair()
    far.close()
    with near, pytest.raises(CsitError, match="monitor of nf-1-1"):
        Monitor("nf-1-1", near)


@pytest.mark.parametrize(("nic", "other"), [("virtio", "e1000"), ("e1000", "virtio")])
def test_only_a_complete_image_of_the_present_recipe_and_model_is_taken(tmp_path: Path, nic: str, other: str) -> None:
    assert image.cached(tmp_path / "none", nic) is None
    place = tmp_path / f"guest-6.1-{image.recipe(nic)}"
    place.mkdir()
    digests = {}
    for name in ("vmlinuz", "initramfs.cpio"):
        (place / name).write_bytes(name.encode())
        digests[name] = hashlib.sha256(name.encode()).hexdigest()
    description = image.Description(
        kernel_version="6.1", packages={}, modules=(), user_space_modules=(), digests=digests
    )
    assert image.cached(tmp_path, nic) is None
    (place / "image.json").write_text(description.model_dump_json(), encoding="utf-8")
    assert (found := image.cached(tmp_path, nic)) and found.description == description
    assert image.cached(tmp_path, other) is None
    (place / "vmlinuz").write_bytes(b"cut sho")
    assert image.cached(tmp_path, nic) is None
    place.rename(tmp_path / "guest-6.1-0123456789ab")
    assert image.cached(tmp_path, nic) is None


def test_only_the_workers_of_this_guest_are_placed(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with subprocess.Popen(["sleep", "60"]) as worker, subprocess.Popen(["sleep", "60"]) as other:
        try:
            tree(tmp_path, {f"{worker.pid}/comm": "vhost-999", f"{other.pid}/comm": "vhost-9990"})
            (tmp_path / "999" / "task").mkdir(parents=True)
            assert place_workers(999, (cpu,), tmp_path) == [worker.pid]
            assert os.sched_getaffinity(worker.pid) == {cpu}
        finally:
            worker.kill()
            other.kill()


def chosen(path: Path, model: str) -> Topology:
    return chosen_topology({"TOPOLOGY": str(path), "NIC_MODEL": model}.get)


KEYS = r"{name}:\d+: nodes\.DUT1\.vm\.nic: "


@pytest.mark.parametrize(
    ("name", "keys", "model", "sentence"),
    [
        ("local.yaml", {"vm": {"nic": "e1001"}}, "", f"{KEYS}unknown word 'e1001'; did you mean 'e1000'"),
        ("local-vpp.yaml", {"vm": {"nic": "e1000"}}, "", f"{KEYS}e1000 cannot be joined to vpp, which shares memory"),
        ("local.yaml", {"vm": {"nic": "e1000"}, "vms": "qemu_vpp"}, "", f"{KEYS}VPP in guests drives VirtIO network"),
        ("local.yaml", {}, "rtl8139", r"^NIC_MODEL 'rtl8139': unknown word 'rtl8139' \(known: virtio, e1000\)"),
        ("sim.yaml", {}, "e1000", "^NIC_MODEL 'e1000': the testbed has virtual machines of kind sim, which have no"),
    ],
)
def test_what_cannot_have_a_model_is_refused_with_its_place(
    tmp_path: Path, *, name: str, keys: Mapping[str, Any], model: str, sentence: str
) -> None:
    document = yaml.safe_load((TOPOLOGIES / name).read_text(encoding="utf-8"))
    document["nodes"]["DUT1"] |= keys
    (tmp_path / name).write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    with pytest.raises(ConfigError, match=sentence.replace("{name}", name)):
        chosen(tmp_path / name, model)


def test_a_run_with_another_model_is_another_testbed_and_says_how_to_repeat_it() -> None:
    for name in ("local.yaml", "local-ovs.yaml", "local-trex.yaml"):
        duts = chosen(TOPOLOGIES / name, "e1000").duts
        assert {dut.settings(Vm) for dut in duts.values()} == {Vm(nic="e1000")}
    lookups = [{"TOPOLOGY": str(TOPOLOGIES / "local.yaml"), "NIC_MODEL": model} for model in ("", "virtio", "e1000")]
    none, virtio, e1000 = (choices(each.get, chosen_topology(each.get)) for each in lookups)
    assert none.topology_digest == virtio.topology_digest != e1000.topology_digest
    assert [each.variables.get("NIC_MODEL") for each in (none, virtio, e1000)] == [None, "virtio", "e1000"]
    of_e1000 = {**lookups[2], "SUITE SOURCE": "any.robot"}
    again = rerun_of(of_e1000.get, chosen_topology(of_e1000.get), "outage")
    assert (again.variables, again.topology_digest) == ({"NIC_MODEL": "e1000"}, e1000.topology_digest)


KNOWN = {
    "debian": {
        "linux-image-cloud-amd64": "linux-image-6.1.0-9-cloud-amd64 (= 6.1.9-1)",
        "linux-image-amd64": "linux-image-6.1.0-9-amd64 | linux-image-unsigned (= 6.1.9-1)",
        "linux-image-6.1.0-9-cloud-amd64": "kmod, linux-base (>= 4.3~)",
        "linux-image-6.1.0-9-amd64": "kmod, linux-base (>= 4.3~)",
    },
    "ubuntu": {
        "linux-image-virtual": "linux-image-6.8.0-9-generic",
        "linux-image-generic": "linux-image-6.8.0-9-generic, linux-modules-extra-6.8.0-9-generic, linux-firmware",
        "linux-image-6.8.0-9-generic": "kmod, linux-modules-6.8.0-9-generic",
        "linux-modules-extra-6.8.0-9-generic": "wireless-regdb, linux-modules-6.8.0-9-generic",
    },
}
"""Dependencies as apt shows them."""


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """An apt that knows the packages of one distribution, and downloads files without content."""
    (tmp_path / "bin").mkdir()
    known = KNOWN[request.param].items()
    tree(tmp_path / "known", {each: f"Package: {each}\nVersion: 9-1\nDepends: {depends}" for each, depends in known})
    for name, body in (
        ("apt-cache", f'for name; do :; done\ncat "{tmp_path}/known/$name" 2>/dev/null'),
        ("apt-get", 'while [ "$1" != download ] && [ $# -gt 0 ]; do shift; done\nfor each; do : >"$each.deb"; done'),
        ("dpkg-deb", "exit 1"),
    ):
        shell_program(tmp_path / "bin" / name, body)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("apt", "nic", "names"),
    [
        ("debian", "virtio", {"image-6.1.0-9-cloud-amd64"}),
        ("debian", "e1000", {"image-6.1.0-9-amd64"}),
        ("ubuntu", "virtio", {"image-6.8.0-9-generic", "modules-6.8.0-9-generic"}),
        ("ubuntu", "e1000", {f"{kind}-6.8.0-9-generic" for kind in ("image", "modules", "modules-extra")}),
    ],
    indirect=["apt"],
)
@pytest.mark.usefixtures("apt")
def test_an_image_is_made_of_a_kernel_with_the_driver(tmp_path: Path, nic: str, names: set[str]) -> None:
    place = tmp_path / "packages"
    place.mkdir()
    found = {path.name.removesuffix(".deb") for path in fetch(place, NICS[nic].kernels)}
    assert found - {"apt-get", "download"} == {*(f"linux-{name}" for name in names), "busybox-static"}


@pytest.mark.parametrize("apt", ["debian"], indirect=True)
@pytest.mark.usefixtures("apt")
def test_the_doctor_names_the_kernel_that_guests_get(tmp_path: Path) -> None:
    (check,) = (each for each in driver_registry.node_checks() if each.key == "guest_kernel_facts")
    for model, package in (("virtio", "linux-image-cloud-amd64 9-1"), ("e1000", "linux-image-amd64 9-1")):
        dut = chosen(TOPOLOGIES / "local.yaml", model).dut
        asked = check.arguments(dut)
        assert asked is not None
        (found,) = check_kernel("nodes.DUT1", dut, guest_kernel_facts.answer(dict(asked)))
        assert (found.level, str(found)) == (Severity.OK, f"nodes.DUT1: guest kernel: {package}, for {model} NICs")
    (tmp_path / "known" / "linux-image-amd64").unlink()
    (found,) = check_kernel("nodes.DUT1", dut, guest_kernel_facts.answer(dict(asked)))
    assert found.level is Severity.WARNING
    assert "nodes.DUT1.vm.nic: guest kernel: apt knows none of linux-image-amd64, linux-image-gen" in str(found)


def unpacked_packages(root: Path, *modules: str, built_in: str = "") -> Path:
    """What packages of a kernel and of busybox unpack to."""
    files = {f"lib/modules/6.1-test/kernel/drivers/{name}.ko": f"\0depends=\0{name}" for name in modules}
    files |= {"lib/modules/6.1-test/modules.builtin": f"kernel/drivers/{built_in}.ko" if built_in else ""}
    return tree(root, {**files, "boot/vmlinuz-6.1-test": "kernel", "bin/busybox": "busybox"})


def test_an_image_for_e1000_needs_its_driver_and_loads_it_also_beside_an_application(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    root = unpacked_packages(tmp_path / "root", "e1000", "virtio_net", "virtio_pci", "virtio_console")
    made = write(root, {}, tmp_path / "made", "e1000")
    assert made.modules == ("e1000",)
    assert {"e1000", "virtio_pci", "virtio_console"} == set(made.application_modules)
    entries = unpacked((tmp_path / "made" / "initramfs.cpio").read_bytes())
    assert b"insmod /modules/e1000.ko" in entries["init"][1]
    assert "modules/virtio_net.ko" not in entries
    root = unpacked_packages(tmp_path / "lacks", "virtio_net", "virtio_pci", "e1000e")
    with pytest.raises(Unsupported, match=r"^the kernel 6\.1-test has no module e1000, which e1000 NICs of guests"):
        write(root, {}, tmp_path / "made", "e1000")
    root = unpacked_packages(tmp_path / "has", built_in="net/ethernet/intel/e1000/e1000")
    assert write(root, {}, tmp_path / "made", "e1000").modules == ()


def packed_kernel(payload: bytes, sectors: int = 3) -> bytes:
    """A kernel with a payload, by the boot protocol: 0 sectors stand for 4, and its size follows what is packed."""
    setup = bytearray(512 * ((sectors or 4) + 1))
    setup[0x1F1], setup[0x202:0x206] = sectors, b"HdrS"
    struct.pack_into("<2I", setup, 0x248, 100, len(payload) + 4)
    return bytes(setup) + bytes(100) + payload + struct.pack("<I", 65906612) + b"relocations"


@pytest.mark.parametrize("sectors", [0, 3, 39])
def test_guests_boot_a_kernel_packed_by_xz_unpacked(sectors: int) -> None:
    elf = b"\x7fELF" + bytes(range(256)) * 9
    assert unpacked_kernel(packed_kernel(lzma.compress(elf, check=lzma.CHECK_CRC32), sectors)) == elf
    for other in (packed_kernel(b"\x28\xb5\x2f\xfdof zstd", sectors), b"no kernel", b""):
        assert unpacked_kernel(other) == other
    with pytest.raises(UnpackError):
        unpacked_kernel(packed_kernel(lzma.compress(bytes(9000))[:40], sectors))
