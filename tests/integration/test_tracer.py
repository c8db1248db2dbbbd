"""The tracer on this kernel: packets of a real NF become its graph, a guest's events too, and nothing is left."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.drivers.probes.tracer import tracefs
from resources.libraries.python.drivers.probes.tracer.driver import KernelTracer
from resources.libraries.python.drivers.probes.tracer.events import KVM_CORE
from resources.libraries.python.errors import NotReady, Unsupported
from resources.libraries.python.model.measurements.features import StateGraph
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.studies.chains.analysis.classes import Workflow, portions
from tests.builders import plan_of
from tests.integration.kvm_program import BUSY_S
from tests.integration.local_fabric import FRAMES, deployed, difference, send
from tests.integration.robot_runs import PROJECT
from tests.integration.user_space import victim

pytestmark = pytest.mark.root
VICTIM = """
import os, sys, time
from pathlib import Path
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.probes.tracer.driver import KernelTracer
with MachineLock(Path(sys.argv[1])) as machine:
    tracer = KernelTracer(lambda: {"nf": [os.getpid()]}, machine)
    tracer.start()
    if "pause" in sys.argv:
        tracer.pause()
    print("tracing", flush=True)
    time.sleep(60)
"""


def traced_by(pid: int) -> bool:
    """Whether a process has its tracing instance; other runs may have theirs."""
    with tracefs.opened() as root:
        return tracefs.present(root, f"csit-density-{pid}")


def wait_for_window() -> None:
    """Wait until the tracer of this process has opened a window: it switches the events on, and then the recording."""
    with tracefs.opened() as root:
        switch = root / "instances" / f"csit-density-{os.getpid()}" / "tracing_on"
        wait_until("a window", lambda: "" if switch.read_text(encoding="ascii").strip() == "1" else "closed", 30.0)


@pytest.fixture(autouse=True)
def tracing_exists() -> None:
    try:
        with tracefs.opened() as root:
            tracefs.events(root)
    except Unsupported as error:
        pytest.skip(str(error))


def test_every_packet_of_an_nf_is_in_its_graph(machine: MachineLock) -> None:
    plan = plan_of("local", "CSC", 1, 1)
    with deployed(plan, machine) as (fabric, _, _):
        rows = fabric.threads()
        nf = [thread for port in plan.ports("nf-1-1") for thread in rows[port.interface]]
        tracer = KernelTracer(
            lambda: {"nf-1-1": nf, "idle": [os.getpid()], "gone": []}, machine, window_s=1.0, period_s=1.0
        )
        tracer.start()
        try:
            assert traced_by(os.getpid())
            flow = plan.flows[0]
            start = fabric.counters([GENERATOR])
            wanted = {name: FRAMES if name == flow.rx_interface else 0 for name in start}
            wait_for_window()
            time.sleep(0.2)  # of the time that is traced
            fabric.run_inside(GENERATOR, partial(send, flow, FRAMES))
            wait_until("frames", partial(difference, fabric, start, wanted), 5.0)
        finally:
            graphs = tracer.stop()
        assert tracer.stop() == ()
    assert not traced_by(os.getpid())
    graph = next(graph for graph in graphs if graph.owner == "nf-1-1")
    assert (graph.source, graph.lost) == ("kernel", 0)
    assert graph.traced_s > 0.2
    count = {(edge.before, edge.after): edge.count for edge in graph.edges}
    # Each frame is received once and sent once by the NF's data threads.
    assert count["net_dev_queue", "net_dev_xmit:sent"] == FRAMES
    assert sum(number for (_, after), number in count.items() if after == "netif_receive_skb") >= FRAMES - 2
    assert any(after == "sched_switch:in" for _, after in count)
    assert tracer.facts()["events"].startswith("traced are containers and processes by ")


def test_the_first_seconds_have_a_window_however_long_the_period_is(own: MachineLock) -> None:
    tracer = KernelTracer(lambda: {"nf": [os.getpid()]}, own, period_s=60.0)
    tracer.start()
    try:
        end = time.monotonic() + 3.0  # the process that opens windows may come late
        while time.monotonic() < end:
            time.sleep(0.001)
    finally:
        (graph,) = tracer.stop()
    assert 0.01 < graph.traced_s < 1.0 and graph.events > 0  # of 3 s; a pause of the machine makes a window longer


@pytest.fixture
def own(tmp_path: Path) -> Iterator[MachineLock]:
    """A lock that is not the machine's: for what nobody else on it could notice."""
    with MachineLock(tmp_path / "lock") as lock:
        yield lock


def needs_kvm_events() -> None:
    with tracefs.opened() as root:
        if not set(KVM_CORE) <= tracefs.events(root):
            pytest.skip("this kernel has no events of kvm")


@contextmanager
def guest() -> Iterator[tuple[int, int]]:
    """Process and vCPU thread of a guest without a disk, which KVM runs as far as it can; it waits until told."""
    argv = ["qemu-system-x86_64", "-name", "traced,debug-threads=on", "-nodefaults", "-no-user-config"]
    argv += ["-display", "none", "-m", "64", "-accel", "kvm", "-S", "-qmp", "stdio"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            vcpus: list[int] = []

            def missing() -> str:
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    if (task / "comm").read_text(encoding="utf-8").startswith("CPU 0/KVM"):
                        vcpus.append(int(task.name))
                return "" if vcpus else f"no vCPU yet, QEMU's status is {process.poll()}"

            wait_until("vCPU", missing, 10.0, pause_s=0.02)
            for command in ("qmp_capabilities", "cont"):
                assert process.stdin is not None
                process.stdin.write(json.dumps({"execute": command}).encode() + b"\n")
                process.stdin.flush()
            yield process.pid, vcpus[0]
        finally:
            process.kill()


def test_a_guest_under_kvm_has_a_graph_of_kvm_events(own: MachineLock) -> None:
    needs_kvm_events()
    if not os.access("/dev/kvm", os.W_OK) or not shutil.which("qemu-system-x86_64"):
        pytest.skip("/dev/kvm cannot be opened, or QEMU is not installed")
    with guest() as (_, vcpu):
        tracer = KernelTracer(lambda: {"vm": [vcpu]}, own, window_s=0.05, period_s=0.1)
        tracer.start()
        try:
            wait_for_window()
            time.sleep(0.2)
        finally:
            (graph,) = tracer.stop()
    assert graph.source == "kvm"
    assert graph.traced_s > 0.05
    seen = {edge.before.partition(":")[0] for edge in graph.edges}
    # Where KVM is nested by page tables of its own, a guest in real mode is emulated: no entry, no exit, but the rest.
    assert seen & {"kvm_entry", "kvm_exit", "kvm_emulate_insn", "kvm_userspace_exit"}
    assert not [name for name in seen if not name.startswith(("kvm_", "sched_"))]
    assert "virtual machines by" in tracer.facts()["events"]


@contextmanager
def small_machine(cycles: int) -> Iterator[subprocess.Popen[str]]:
    """A program that runs a virtual machine of its own, ready and waiting to be told to begin."""
    needs_kvm_events()
    argv = [sys.executable, "-m", "tests.integration.kvm_program", str(cycles)]
    with subprocess.Popen(
        argv, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                assert process.stderr is not None
                pytest.skip(f"no virtual machine can be made here: {process.stderr.read().splitlines()[-1]}")
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str]) -> None:
    """Let a small machine go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def seen(graph: StateGraph) -> Counter[str]:
    """How often each vertex came after another one."""
    found: Counter[str] = Counter()
    for edge in graph.edges:
        found[edge.after] += edge.count
    return found


def spent(graph: StateGraph, *before: str) -> float:
    """Seconds after vertices that begin with these words."""
    return sum(edge.seconds for edge in graph.edges if edge.before.startswith(before))


def test_every_exit_of_a_virtual_machine_is_in_its_graph_with_the_time_after_it(own: MachineLock) -> None:
    cycles = 300
    with small_machine(cycles) as process:
        tracer = KernelTracer(lambda: {"vm": [process.pid]}, own, window_s=1.0, period_s=1.0)
        tracer.start()
        try:
            wait_for_window()
            tell(process)
            assert process.stdout is not None
            did = json.loads(process.stdout.readline())
            time.sleep(0.1)
        finally:
            (graph,) = tracer.stop()
    assert (did["io"], did["hlt"]) == (cycles, cycles)
    assert (graph.source, graph.lost) == ("kvm", 0)
    count = seen(graph)
    assert count["kvm_userspace_exit:IO"] == count["kvm_userspace_exit:HLT"] == count["kvm_pio:write"] == cycles
    assert count["kvm_fpu:load"] == count["kvm_fpu:unload"] >= 2 * cycles, "each run begins and ends"
    entered = sum(number for vertex, number in count.items() if vertex.startswith("kvm_exit"))
    # Hardware leaves the guest twice a cycle. Where KVM emulates real mode, a cycle is three instructions of it.
    if entered:
        assert entered >= 2 * cycles
        assert abs(count["kvm_entry"] - entered) <= 1
    else:
        assert count["kvm_emulate_insn"] == 3 * cycles - 1, "the first cycle does not begin with the jump"
    # What the program measured lies between the event of an exit and the first one of the next run; whenever other
    # threads had the CPU in between, their time follows an event of the scheduler.
    away_s, others_s = spent(graph, "kvm_userspace_exit:IO"), spent(graph, "sched_")
    assert 0 < away_s < did["away_s"] + cycles * 0.001
    assert away_s + others_s > did["away_s"] >= cycles * BUSY_S
    in_kvm = spent(graph, "kvm_") - spent(graph, "kvm_userspace_exit")
    assert 0 < in_kvm < did["running_s"] + cycles * 0.001
    shares = {row.workflow: row for row in portions(graph)}
    assert shares[Workflow.IO].count_per_s * graph.traced_s >= 2 * cycles
    assert shares[Workflow.IO].time_ratio > 0


def test_a_virtual_machine_that_is_killed_in_the_middle_keeps_its_graph_until_then(own: MachineLock) -> None:
    with small_machine(10**9) as ends_early, small_machine(100) as other:
        pids = {"killed": [ends_early.pid], "other": [other.pid]}
        tracer = KernelTracer(lambda: pids, own, window_s=1.0, period_s=1.0)
        tracer.start()
        try:
            wait_for_window()
            tell(ends_early)
            time.sleep(0.3)
            ends_early.kill()
            ends_early.wait()
            tell(other)
            assert other.stdout is not None
            json.loads(other.stdout.readline())
            time.sleep(0.1)
        finally:
            graphs = {graph.owner: graph for graph in tracer.stop()}
    assert not traced_by(os.getpid())
    count = seen(graphs["killed"])
    assert count["kvm_userspace_exit:IO"] > 10
    assert 0 <= count["kvm_userspace_exit:IO"] - count["kvm_userspace_exit:HLT"] <= 1
    (end,) = [vertex for vertex in count if vertex.startswith(("sched_switch:out:X", "sched_switch:out:Z"))]
    assert count[end] == 1
    assert not [edge for edge in graphs["killed"].edges if edge.before == end], "nothing follows a thread's end"
    assert seen(graphs["other"])["kvm_userspace_exit:IO"] == 100


def test_a_paused_tracer_records_nothing_until_it_is_resumed_and_ends_also_when_paused(own: MachineLock) -> None:
    tracer = KernelTracer(lambda: {"nf": [os.getpid()]}, own, window_s=0.02, period_s=0.04, cpu=0)
    tracer.start()
    try:
        with tracefs.opened() as root:
            instance = tracefs.TraceInstance(root, f"csit-density-{os.getpid()}")

            def same(before: int) -> str:
                return "" if instance.counts()[0] > before else "no event more"

            wait_until("events", partial(same, 0), 5.0)
            tracer.pause()
            before = instance.counts()[0]
            with pytest.raises(NotReady, match="no event more"):
                wait_until("events", partial(same, before), 0.12)
            tracer.resume()
            wait_until("events", partial(same, before), 5.0)
            tracer.pause()
    finally:
        (graph,) = tracer.stop()
    assert graph.events > 0
    assert 0 < tracer.cpu_s < 5
    assert tracer.facts()["tracing"].endswith(" % of a CPU's time, on CPU 0")


@pytest.mark.parametrize("state", ["trace", "pause"])
def test_what_a_killed_run_left_is_removed_by_the_next_one(tmp_path: Path, state: str) -> None:
    with victim(VICTIM, str(tmp_path), state, says="tracing") as run:
        run.kill()
    assert traced_by(run.pid)
    with MachineLock(tmp_path) as lock:
        removed = lock.remove_leftovers()
    assert any(f"removed tracing instance csit-density-{run.pid}" in sentence for sentence in removed)
    assert not traced_by(run.pid)


def test_an_nf_without_threads_here_has_no_graph_and_the_facts_say_so(own: MachineLock) -> None:
    tracer = KernelTracer(lambda: {"nf": []}, own)
    tracer.start()
    assert tracer.stop() == ()
    assert tracer.facts() == {"events": "nothing is traced: no NF has a thread on this machine that could be followed"}
