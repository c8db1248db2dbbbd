"""What virtual machines are made of, as far as it needs no machine."""

import hashlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.vm.accelerator import AcceleratorChoice, choose
from resources.libraries.python.drivers.functions.vm.archive import cpio, file, folder
from resources.libraries.python.drivers.functions.vm.driver import place_workers
from resources.libraries.python.drivers.functions.vm.guest import Console
from resources.libraries.python.drivers.functions.vm.image import (
    Description,
    cached,
    depends,
    load_order,
    package_depends,
    recipe,
)
from resources.libraries.python.drivers.functions.vm.init import READY, command_line, render_init
from resources.libraries.python.drivers.functions.vm.qemu import GuestNic, Hardware, Monitor, arguments
from resources.libraries.python.errors import CommandFailed, CsitError, NotReady, Unsupported
from tests.builders import cpus, plan_of
from tests.unit.drivers.functions.guest_archives import unpacked

PROJECT = Path(__file__).parents[4]
BOOT = Path("vmlinuz"), Path("initramfs.cpio")


def test_an_archive_has_every_file_with_its_mode_whatever_its_length() -> None:
    contents = [b"x" * length for length in range(9)]
    archive = cpio([folder("bin"), *(file(f"bin/{'n' * len(c)}", c, executable=len(c) > 4) for c in contents)])
    assert unpacked(archive) == {
        "bin": (0o040755, b""),
        **{f"bin/{'n' * len(c)}": (0o100755 if len(c) > 4 else 0o100644, c) for c in contents},
    }


def test_modules_are_loaded_after_those_that_they_need() -> None:
    def module(*needs: str) -> bytes:
        return b"\x7fELF\0license=GPL\0depends=" + ",".join(needs).encode() + b"\0name=any\0"

    files = {
        "virtio_net": module("virtio-ring", "virtio", "net_failover"),
        "virtio": module("virtio_ring"),
        "virtio_ring": module(),
        "net_failover": module("failover", "built_in"),
        "failover": module(),
        "unwanted": module(),
    }
    order = load_order(["virtio_pci", "virtio_net"], files)
    assert order == ["virtio_ring", "virtio", "failover", "net_failover", "virtio_net"]
    assert depends(files["failover"]) == []


def test_dependencies_are_read_from_a_description() -> None:
    shown = "Package: linux-image-virtual\nDepends: linux-image-6.8.0-1-generic (= 6.8.0-1.1), kmod | module-init\n"
    assert package_depends(shown) == ["linux-image-6.8.0-1-generic", "kmod"]
    assert package_depends("") == []


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


def test_qemu_gets_the_taps_the_planned_macs_and_the_mtu() -> None:
    nics = tuple(GuestNic(f"52:54:00:00:01:0{number}", 10 + number, 9000) for number in (1, 2))
    argv = arguments("nf-1-1", Hardware("tcg", 128, 2, nics), BOOT, "quiet", 5)
    assert argv[argv.index("-smp") + 1] == "2"
    assert argv[argv.index("-append") + 1] == "quiet"
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "-netdev"] == [
        "tap,id=net1,fd=11", "tap,id=net2,fd=12",
    ]  # fmt: skip
    devices = [argv[at + 1] for at, word in enumerate(argv) if word == "-device"]
    for number, device in enumerate(devices, 1):
        assert device.startswith(
            f"virtio-net-pci,netdev=net{number},addr=0x1{number},mac=52:54:00:00:01:0{number},host_mtu=9000,"
        )
    assert "-S" in argv
    assert "socket,id=monitor,fd=5" in argv


@pytest.mark.parametrize(("accelerator", "words"), [("kvm", ("kvm", "host")), ("tcg", ("tcg,thread=multi", "qemu64"))])
def test_the_accelerator_comes_with_its_cpu(accelerator: str, words: tuple[str, str]) -> None:
    argv = arguments("probe", Hardware(accelerator, 128, 1), BOOT, "")
    assert (argv[argv.index("-accel") + 1], argv[argv.index("-cpu") + 1]) == words
    assert "-S" not in argv


@pytest.mark.parametrize(("accelerator", "vectors"), [("kvm", ",mq=on,vectors=6,"), ("tcg", ",mq=on,vectors=0,")])
def test_a_card_that_shares_memory_has_a_pair_of_queues_for_each_data_thread(accelerator: str, vectors: str) -> None:
    card = GuestNic("52:54:00:00:01:01", None, 1500, socket=Path("/run/v.sock"), queues=2)
    argv = arguments("nf", Hardware(accelerator, 128, 2, (card,)), BOOT, "")
    assert "vhost-user,id=net1,chardev=vhost1,queues=2" in argv
    assert vectors in argv[argv.index("-device") + 1]
    alone = arguments("nf", Hardware("kvm", 128, 2, (replace(card, queues=1),)), BOOT, "")
    assert "vhost-user,id=net1,chardev=vhost1" in alone
    assert "mq=on" not in alone[alone.index("-device") + 1]


def test_with_vhost_the_hosts_kernel_copies_packets() -> None:
    argv = arguments("nf", Hardware("kvm", 128, 1, (GuestNic("52:54:00:00:01:01", 7, 1500, vhost=9),)), BOOT, "")
    assert "tap,id=net1,fd=7,vhost=on,vhostfd=9" in argv


def never() -> str:
    raise AssertionError("a guest was booted although the outcome is known")


def test_kvm_is_taken_where_a_guest_boots_and_the_trial_is_made_once_per_start_of_the_machine(tmp_path: Path) -> None:
    memory = tmp_path / "accelerator.json"
    assert choose("auto", "6.1", memory, lambda: "", "boot 1").accelerator == "kvm"
    assert choose("auto", "6.1", memory, never, "boot 1").accelerator == "kvm"
    fallen = choose("auto", "6.1", memory, lambda: "it hangs for 20 s", "boot 2")
    assert fallen == AcceleratorChoice(accelerator="tcg", why="no guest boots with KVM here: it hangs for 20 s")
    assert choose("auto", "6.1", memory, never, "boot 2") == fallen
    assert choose("auto", "6.2", memory, lambda: "", "boot 2").accelerator == "kvm"


def test_a_damaged_cache_entry_is_determined_again(tmp_path: Path) -> None:
    memory = tmp_path / "accelerator.json"
    memory.write_text("{", encoding="utf-8")
    assert choose("auto", "6.1", memory, lambda: "", "boot").accelerator == "kvm"


def test_the_testbed_may_insist(tmp_path: Path) -> None:
    memory = tmp_path / "accelerator.json"
    assert choose("tcg", "6.1", memory, never, "boot").accelerator == "tcg"
    with pytest.raises(Unsupported, match="/dev/kvm: No such file"):
        choose("kvm", "6.1", memory, lambda: "/dev/kvm: No such file", "boot")


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


def answering(far: socket.socket, answer: Callable[[str], list[object]]) -> threading.Thread:
    """A monitor that greets and answers each command with messages."""

    def work() -> None:
        version = {"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": "Debian"}
        far.sendall(json.dumps({"QMP": {"version": version}}).encode() + b"\r\n")
        with far.makefile("rb") as commands:
            for line in commands:
                for message in answer(json.loads(line)["execute"]):
                    far.sendall(json.dumps(message).encode() + b"\r\n")
        far.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_monitor_finds_its_answer_among_events_and_passes_refusals_on() -> None:
    def answer(command: str) -> list[object]:
        if command == "bad":
            return [{"error": {"desc": "no such command"}}]
        return [{"event": "RESUME"}, {"return": command}]

    near, far = socket.socketpair()
    thread = answering(far, answer)
    monitor = Monitor("nf-1-1", near)
    assert monitor.version == "7.2.22 Debian"
    assert monitor.ask("query-status") == "query-status"
    with pytest.raises(CommandFailed, match="nf-1-1: no such command"):
        monitor.ask("bad")
    monitor.close()
    thread.join(60)


def test_a_monitor_that_closes_or_is_silent_is_named() -> None:
    near, far = socket.socketpair()
    far.close()
    with pytest.raises(CsitError, match="monitor of nf-1-1"):
        Monitor("nf-1-1", near)
    near.close()
    near, far = socket.socketpair()
    with pytest.raises(NotReady, match="monitor of nf-1-1"):
        Monitor("nf-1-1", near, within_s=0.05)
    near.close()
    far.close()


def test_only_a_complete_image_of_the_present_recipe_is_taken(tmp_path: Path) -> None:
    assert cached(tmp_path / "none") is None
    place = tmp_path / f"guest-6.1-{recipe()}"
    place.mkdir()
    digests = {}
    for name in ("vmlinuz", "initramfs.cpio"):
        (place / name).write_bytes(name.encode())
        digests[name] = hashlib.sha256(name.encode()).hexdigest()
    description = Description(kernel_version="6.1", packages={}, modules=(), user_space_modules=(), digests=digests)
    assert cached(tmp_path) is None
    (place / "image.json").write_text(description.model_dump_json(), encoding="utf-8")
    found = cached(tmp_path)
    assert found is not None
    assert found.description == description
    (place / "vmlinuz").write_bytes(b"cut sho")
    assert cached(tmp_path) is None
    place.rename(tmp_path / "guest-6.1-0123456789ab")
    assert cached(tmp_path) is None


def test_only_the_workers_of_this_guest_are_placed(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with subprocess.Popen(["sleep", "60"]) as worker, subprocess.Popen(["sleep", "60"]) as other:
        try:
            for process, name in ((worker, "vhost-999"), (other, "vhost-9990")):
                (tmp_path / str(process.pid)).mkdir()
                (tmp_path / str(process.pid) / "comm").write_text(f"{name}\n", encoding="utf-8")
            (tmp_path / "999" / "task").mkdir(parents=True)
            assert place_workers(999, (cpu,), tmp_path) == [worker.pid]
            assert os.sched_getaffinity(worker.pid) == {cpu}
        finally:
            worker.kill()
            other.kill()


def test_memory_of_huge_pages_is_shared_and_of_the_node_of_the_ports() -> None:
    argv = arguments("nf", Hardware("kvm", 1500, 1, huge_page_mb=1024, numa_node=1), BOOT, "")
    assert argv[argv.index("-m") + 1] == "2048"
    backend = argv[argv.index("-object") + 1]
    assert backend == (
        "memory-backend-memfd,id=memory,size=2048M,share=on,hugetlb=on,hugetlbsize=1024M,prealloc=on,"
        "host-nodes=1,policy=bind"
    )
    assert argv[argv.index("-machine") + 1].endswith("memory-backend=memory")
