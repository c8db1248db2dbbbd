"""Virtual machines on this machine: real guests that boot, forward real packets, and tell why when they do not."""

import os
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from resources.libraries.python.drivers.functions.vm import Vm, accelerator
from resources.libraries.python.drivers.functions.vm.accelerator import missing
from resources.libraries.python.drivers.functions.vm.archive import cpio, file, folder
from resources.libraries.python.drivers.functions.vm.driver import FOLDER, VirtualMachines
from resources.libraries.python.drivers.functions.vm.image import Image, image
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.image_cache import cache_folder
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.vswitches.linux_bridge.driver import LinuxBridge
from resources.libraries.python.errors import CsitError, NotReady, Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.result import VerdictKind
from resources.libraries.python.planning.names import GENERATOR
from tests.builders import plan_of
from tests.integration.local_fabric import FRAMES, difference, send
from tests.integration.machine_watch import processes
from tests.integration.robot_runs import LOCAL, network_state, results, run_robot, variables, wait_for_network_state
from tests.integration.user_space import victim

pytestmark = [
    pytest.mark.parallel,
    pytest.mark.root,
    pytest.mark.skipif(bool(missing()), reason="; ".join(map(str, missing()))),
]
VICTIM = """
import time
from tests.builders import plan_of
from tests.integration.test_vm import deployed
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
with MachineLock() as machine, deployed(plan_of("local", "VSC", 1, 1), machine):
    print("deployed", flush=True)
    time.sleep(60)
"""
STUCK = "#!/bin/busybox sh\necho 'no network card of mine anywhere'\nwhile :; do /bin/busybox sleep 9; done\n"
ENDS = "#!/bin/busybox sh\necho 'I give up'\n"


@contextmanager
def deployed(
    plan: Plan,
    machine: MachineLock,
    *,
    frame_bytes: int = 1518,
    settings: Vm | None = None,
    image_in: Callable[[Path, str], Image] = image,
) -> Iterator[tuple[Fabric, VirtualMachines]]:
    fabric = Fabric(plan, machine, frame_bytes)
    guests = VirtualMachines(plan.functions, plan, fabric, machine, settings or Vm(), image_in=image_in)
    with ExitStack() as stack:
        for part in (fabric, LinuxBridge(plan, fabric), guests):
            stack.callback(part.stop)
            part.start()
        yield fabric, guests


def emulators() -> dict[int, str]:
    """QEMU processes of this machine with their command lines."""
    return processes(lambda words: words[0].startswith("qemu-system"))


def broken_image(init: str, tmp_path: Path) -> Callable[[Path, str], Image]:
    """The real image with another init program."""

    def made(cache: Path, nic: str) -> Image:
        good = image(cache, nic)
        boot = Image(good.kernel.parent)
        boot.initramfs = tmp_path / "initramfs.cpio"
        busybox = _busybox(good.initramfs.read_bytes())
        entries = [folder("bin"), folder("dev"), file("bin/busybox", busybox, executable=True)]
        boot.initramfs.write_bytes(cpio([*entries, file("init", init.encode(), executable=True)]))
        return boot

    return made


def _busybox(archive: bytes) -> bytes:
    begin = archive.index(b"bin/busybox\0") - 110
    size = int(archive[begin + 54 : begin + 62], 16)
    assert stat.S_ISREG(int(archive[begin + 14 : begin + 22], 16))
    content = (begin + 110 + len(b"bin/busybox\0") + 3) // 4 * 4
    return archive[content : content + size]


def send_both_ways(plan: Plan, fabric: Fabric) -> None:
    for flow in plan.flows:
        start = fabric.counters([GENERATOR])
        wanted = {name: FRAMES if name == flow.rx_interface else 0 for name in start}
        fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
        wait_until(f"frames of {flow}", partial(difference, fabric, start, wanted), 30.0)


def test_packets_pass_through_guests_in_both_directions(machine: MachineLock) -> None:
    before = network_state()
    plan = plan_of("local", "VSC", 1, 2)
    with deployed(plan, machine) as (fabric, guests):
        assert len(emulators()) == 2
        assert guests.problems() == ()
        send_both_ways(plan, fabric)
        # What enters a guest is received at one port, what leaves it is sent at the other; and nothing else ever is.
        assert set(guests.counters().values()) == {InterfaceCounters(FRAMES, FRAMES, 0, 0)}
        facts = guests.facts()
        assert facts["nic"] == "virtio"
        assert facts["accelerator"] in {"kvm", "tcg"}
        assert facts["why"]
        assert facts["qemu"][0].isdigit()
        assert facts["guest kernel"]
    wait_for_network_state(before)
    assert emulators() == {}
    assert not FOLDER.exists()


def test_packets_pass_through_a_guest_with_emulated_network_cards_as_soon_as_it_is_ready(machine: MachineLock) -> None:
    plan = plan_of("local", "VSC", 1, 1)
    settings = Vm(nic="e1000", accelerator="tcg", boot_within_s=180.0)
    with deployed(plan, machine, settings=settings) as (fabric, guests):
        send_both_ways(plan, fabric)
        assert set(guests.counters().values()) == {InterfaceCounters(FRAMES, FRAMES, 0, 0)}
        ((_, words),) = emulators().items()
        assert (words.count("-device e1000,"), words.count("virtio-net")) == (2, 0)
        facts = guests.facts()
        assert (facts["nic"], facts["vhost"]) == ("e1000", "off: e1000 has none")
        assert guests.problems() == ()


def test_threads_of_guests_run_where_they_were_planned(machine: MachineLock) -> None:
    plan = plan_of("local", "VSC", 1, 1)
    (cpu,) = plan.cores.cpus("nf-1-1")
    with deployed(plan, machine) as (_, guests):
        assert guests.affinity() == {"csn1x1i1": {cpu}, "csn1x1i2": {cpu}}
        ((pid, _),) = emulators().items()
        threads = {
            thread.name: (thread / "comm").read_text(encoding="utf-8").strip()
            for thread in Path(f"/proc/{pid}/task").iterdir()
        }
        (vcpu,) = [int(thread) for thread, name in threads.items() if name.startswith("CPU 0/")]
        assert os.sched_getaffinity(vcpu) == {cpu}
        assert os.sched_getscheduler(vcpu) == os.SCHED_FIFO
        if "off" in guests.facts()["vhost"]:
            assert os.sched_getaffinity(pid) == {cpu}
            assert os.sched_getscheduler(pid) == os.SCHED_FIFO
        # Moved away behind the driver's back, it is seen elsewhere.
        others = os.sched_getaffinity(0) - {cpu}
        if others:
            os.sched_setaffinity(vcpu, others)
            assert guests.affinity()["csn1x1i1"] == others | {cpu}


@pytest.mark.parametrize("nic", ["virtio", "e1000"])
def test_a_frame_of_9000_bytes_passes(machine: MachineLock, nic: Literal["virtio", "e1000"]) -> None:
    plan = plan_of("local", "VSC", 1, 1)
    flow = plan.flows[0]
    with deployed(plan, machine, frame_bytes=9000, settings=Vm(nic=nic)) as (fabric, guests):
        start = fabric.counters([GENERATOR])
        wanted = {name: FRAMES if name == flow.rx_interface else 0 for name in start}
        fabric.run_inside(GENERATOR, partial(send, flow, FRAMES, bytes(9000 - 18 - 28)))
        wait_until("large frames", partial(difference, fabric, start, wanted), 30.0)
        assert guests.counters()["csn1x1i2"] == InterfaceCounters(0, FRAMES, 0, 0)


def test_a_guest_that_does_not_come_up_shows_its_console_in_time(machine: MachineLock, tmp_path: Path) -> None:
    before = network_state()
    begin = time.monotonic()
    settings = Vm(boot_within_s=15.0, accelerator="tcg")
    with (
        pytest.raises(NotReady, match=r"virtual machine of nf-1-1 not ready after 15\.0 s") as caught,
        deployed(plan_of("local", "VSC", 1, 1), machine, settings=settings, image_in=broken_image(STUCK, tmp_path)),
    ):
        pass
    assert "no network card of mine anywhere" in str(caught.value)
    assert time.monotonic() - begin < 90.0
    wait_for_network_state(before)
    assert emulators() == {}


def test_a_guest_that_panics_reports_the_reason(machine: MachineLock, tmp_path: Path) -> None:
    settings = Vm(accelerator="tcg")
    with (
        pytest.raises(CsitError, match="the virtual machine of nf-1-1 ended") as caught,
        deployed(plan_of("local", "VSC", 1, 1), machine, settings=settings, image_in=broken_image(ENDS, tmp_path)),
    ):
        pass
    assert "Kernel panic - not syncing: Attempted to kill init!" in str(caught.value)
    assert emulators() == {}


def test_a_guest_that_is_killed_is_named(machine: MachineLock) -> None:
    with deployed(plan_of("local", "VSC", 1, 2), machine) as (_, guests):
        (pid,) = [pid for pid, words in emulators().items() if "-name nf-1-2," in words]
        os.kill(pid, signal.SIGKILL)
        found = guests.problems()
        assert any(each.startswith("the virtual machine of nf-1-2 was killed by SIGKILL") for each in found), found
        assert not any("nf-1-1" in problem for problem in found)
        assert guests.affinity()["csn1x2i1"] == frozenset()


def test_guests_that_a_killed_run_left_are_ended_by_the_next(machine: MachineLock) -> None:
    before = network_state()
    machine.__exit__(None, None, None)
    with victim(VICTIM) as run:
        run.kill()
    machine.__enter__()
    assert len(emulators()) == 1
    removed = machine.remove_leftovers()
    assert any("qemu-system" in sentence for sentence in removed)
    wait_until("end of the guest", lambda: str(emulators()) if emulators() else "", 30.0)
    wait_for_network_state(before)


def test_the_second_image_needs_no_network_and_is_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = image(cache_folder())
    monkeypatch.setenv("PATH", str(tmp_path))
    second = image(cache_folder())
    assert second.kernel == first.kernel
    assert second.description == first.description
    with pytest.raises(Unsupported, match="there is no apt-get here"):
        image(tmp_path / "empty")
    # A killed maker leaves a folder of work, and the next one removes it.
    shutil.copytree(first.kernel.parent, tmp_path / "cache" / first.kernel.parent.name)
    (tmp_path / "cache" / ".building-dead").mkdir()
    assert image(tmp_path / "cache").description == first.description
    assert not (tmp_path / "cache" / ".building-dead").exists()


def test_a_trial_of_kvm_ends_by_its_deadline_and_leaves_nothing(machine: MachineLock, tmp_path: Path) -> None:
    begin = time.monotonic()
    reason = accelerator.try_kvm(image(cache_folder()), tmp_path, machine, within_s=2.0)
    assert time.monotonic() - begin < 60.0
    assert emulators() == {}
    stuck = broken_image(STUCK, tmp_path)(cache_folder(), "virtio")
    assert accelerator.try_kvm(stuck, tmp_path, machine, within_s=1.0)
    assert emulators() == {}
    assert reason == "" or len(reason) > 10


@pytest.mark.parametrize("nic", ["virtio", "e1000"])
def test_a_vsc_is_measured_and_says_what_its_guests_ran_on(tmp_path: Path, nic: str) -> None:
    before = network_state()
    words = f"NF_SIZES:1c SEARCH:quick,sum=1,time=10 CELLS:1x1 NIC_MODEL:{nic}"
    run_robot(tmp_path, *LOCAL, *variables(words), "--suite", "vsc-mrr")
    wait_for_network_state(before)
    assert emulators() == {}
    (row,) = results(tmp_path)
    assert row.mrr
    assert row.mrr.mean_pps > 1000
    assert all(each.actual_cpus == (each.planned_cpu,) for each in row.affinity)
    facts = row.facts["functions"]
    assert facts["nic"] == nic
    assert (VerdictKind.EMULATED in row.verdict.kinds) == (facts["accelerator"] == "tcg")
    if facts["accelerator"] == "tcg":
        assert any("software emulation (TCG)" in line and facts["why"] in line for line in row.verdict.evidence)
