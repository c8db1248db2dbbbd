"""Processors: those of the file, isolation, frequency, SMT, mitigations, and the noise floor of the CPUs of plans."""

import logging
from collections.abc import Collection, Iterator, Sequence

from pydantic import TypeAdapter, ValidationError

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import ON_FIRST_USE, error_text
from resources.libraries.python.model.findings import CheckFinding, ok, problem, warning
from resources.libraries.python.model.measurements.noise import CpuNoise
from resources.libraries.python.model.testbed.cpu import CpuLayout, expand, layout, ranges
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.quantities import counted, latency, rate
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES, in_words
from resources.libraries.python.testbed.connection.local import or_here
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.facts import Cpu, Facts
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.scripts import noise


def check(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    """Findings about a node's processors."""
    place, cpu, node = f"nodes.{name}", facts.machine.cpu, topology.nodes[name]
    there = layout(cpu.rows)
    numa = {row.node for row in there.cpus}
    where = "in a virtual machine" if cpu.hypervisor else "on bare metal"
    yield ok(
        place,
        "processor",
        f"{cpu.model or 'unknown'}, {len(there.cpus)} CPUs, {counted(len(numa), 'NUMA node')}, {where}",
    )
    wanted = facts.layout_of(node)
    if node.cpus != "discover":
        yield from _differences(f"{place}.cpus", wanted, there)
    if topology.world is World.LAB:
        yield from _isolation(place, cpu, planned_cpus(wanted, node))
        if cpu.hypervisor:
            fix = "measure on bare metal, or pin its vCPUs and read figures as those of this machine only"
            yield warning(place, "virtual", "it is a virtual machine: its host may take CPUs away at any time", fix)
    yield from _frequency(place, cpu)
    yield _smt(place, cpu, there)
    yield from _unequal(place, wanted, node.numa_node)
    yield _mitigations(place, facts)


def planned_cpus(there: CpuLayout, node: TgNode | DutNode) -> tuple[int, ...]:
    """Logical CPUs that plans may use: those of the NUMA node of the interfaces without the system's cores."""
    system_cores = node.core_sharing.system_cores if isinstance(node, DutNode) else 1
    return tuple(sorted(cpu for core in there.cores(node.numa_node)[system_cores:] for cpu in core))


def listed(text: str | None) -> frozenset[int]:
    """A list of the kernel's; empty where there is none."""
    return frozenset(expand(text)) if text else frozenset()


def _differences(place: str, wanted: CpuLayout, there: CpuLayout) -> Iterator[CheckFinding]:
    """Where the file is about another machine than the one that answers."""
    is_there = {row.cpu: row for row in there.cpus}
    missing = [row.cpu for row in wanted.cpus if row.cpu not in is_there]
    if missing:
        text = f"CPUs {ranges(missing)} are not online; {len(is_there)} are: {ranges(is_there)}"
        yield problem(place, "cpus", text, "echo 1 > /sys/devices/system/cpu/cpuN/online, or say cpus: discover")
    moved = [row.cpu for row in wanted.cpus if row.cpu in is_there and is_there[row.cpu].node != row.node]
    if moved:
        first = moved[0]
        text = f"CPUs {ranges(moved)} are on another NUMA node than listed; CPU {first} is on {is_there[first].node}"
        yield problem(place, "cpus", text, "correct `node`, or say cpus: discover")
    alike = _siblings(wanted, set(is_there)) == _siblings(there, {row.cpu for row in wanted.cpus})
    if not missing and not alike:
        first_core = next(iter(sorted(_siblings(there, set(is_there)))))
        text = f"which CPUs share a core differs from the file; CPU {first_core[0]} is of core {ranges(first_core)}"
        yield problem(place, "cpus", text, "correct `cores`, or say cpus: discover")
    elif not missing and not moved:
        yield ok(place, "cpus", f"all {len(wanted.cpus)} listed CPUs are as listed")


def _siblings(of: CpuLayout, among: set[int]) -> set[tuple[int, ...]]:
    cores = (core for node in of.numa_nodes for core in of.cores(node))
    return {tuple(cpu for cpu in core if cpu in among) for core in cores} - {()}


def _isolation(place: str, cpu: Cpu, planned: tuple[int, ...]) -> Iterator[CheckFinding]:
    isolated = listed(cpu.isolated)
    exposed = [each for each in planned if each not in isolated]
    arguments = f"isolcpus={ranges(planned)} nohz_full={ranges(planned)} rcu_nocbs={ranges(planned)}"
    fix = (
        f"boot with {arguments} (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub); "
        "./csit prepare TOPOLOGY --dry-run prints the line"
    )
    if exposed:
        text = f"{len(exposed)} of {len(planned)} CPUs that plans use are not isolated: {ranges(exposed)}"
        yield warning(place, "isolation", f"{text}; other processes can run there", fix)
        return
    yield ok(place, "isolation", f"all {len(planned)} CPUs that plans use are isolated")
    ticking = [each for each in planned if each not in listed(cpu.nohz_full)]
    if ticking:
        text = f"the kernel's tick interrupts {len(ticking)} of {len(planned)} CPUs that plans use: {ranges(ticking)}"
        yield warning(place, "tick", text, fix)


def _frequency(place: str, cpu: Cpu) -> Iterator[CheckFinding]:
    slow = {governor: cpus for governor, cpus in cpu.governors.items() if governor != "performance"}
    if slow:
        text = ", ".join(f"{governor} on CPUs {ranges(cpus)}" for governor, cpus in slow.items())
        yield warning(
            place, "governor", f"{text}: frequency follows load, figures too",
            "./csit prepare TOPOLOGY, or cpupower frequency-set -g performance, or: echo performance | "
            "tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )  # fmt: skip
    elif cpu.governors:
        yield ok(place, "governor", f"performance on all {sum(map(len, cpu.governors.values()))} CPUs")
    else:
        yield ok(place, "governor", "the kernel does not set frequencies here")
    if cpu.boost:
        fix = (
            "./csit prepare TOPOLOGY, or: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, "
            "or: echo 0 > /sys/devices/system/cpu/cpufreq/boost"
        )
        yield warning(
            place, "boost", "is on: the frequency depends on how many cores are busy, and how warm it is", fix
        )
    elif cpu.boost is False:
        yield ok(place, "boost", "is off")


def _smt(place: str, cpu: Cpu, there: CpuLayout) -> CheckFinding:
    if there.smt:
        return ok(place, "SMT", "is on: half a core (0.5c) can be planned")
    if cpu.smt in ("off", "forceoff"):
        fix = "echo on > /sys/devices/system/cpu/smt/control, or in the firmware"
        return warning(
            place,
            "SMT",
            "is off: cells with NFs of 0.5c are left out; two NFs of 0.5c-shared take turns on a core",
            fix,
        )
    return ok(
        place,
        "SMT",
        "the processor has none: cells with NFs of 0.5c are left out; two NFs of 0.5c-shared take turns on a core",
    )


def _unequal(place: str, there: CpuLayout, numa_node: int) -> Iterator[CheckFinding]:
    cores = there.cores(numa_node)
    most = max(map(len, cores), default=0)
    if fewer := [cpu for core in cores if len(core) < most for cpu in core]:
        text = f"cores have unequal numbers of threads: fewer than {most} on those of CPUs {ranges(fewer)}"
        fix = "echo 1 > /sys/devices/system/cpu/cpuN/online where a sibling is offline; nothing for P and E cores"
        yield warning(place, "cores", f"{text}; data threads get the others first", fix)


def _mitigations(place: str, facts: Facts) -> CheckFinding:
    """On or off is a choice; it has to be known, as it is worth a third of the throughput of kernel paths."""
    weak = facts.machine.cpu.vulnerabilities
    active = [name for name, text in weak.items() if text.startswith("Mitigation")]
    bare = [name for name, text in weak.items() if text.startswith("Vulnerable")]
    words = (facts.machine.command_line or "").split()
    switch = next((word for word in words if word.startswith("mitigations=")), "mitigations by default")
    return ok(place, "mitigations", f"{switch}: {len(active)} active, {len(bare)} vulnerabilities left open")


_ROWS: TypeAdapter[tuple[CpuNoise, ...]] = TypeAdapter(tuple[CpuNoise, ...], config=ON_FIRST_USE)
_MORE_S = 30.0
_log = logging.getLogger(__name__)
_LONGEST_NS = 1_000_000
"""As long as a receive queue of 256 frames lasts at 256 kpps; a host that is tuned stays below a tenth of it."""
_NOISE_SHARE = 0.005
_NOISE_FIX = (
    "isolate the CPUs (isolcpus, nohz_full, rcu_nocbs), move interrupts and stop irqbalance (./csit prepare TOPOLOGY), "
    "keep C-states shallow, and ask the firmware for less power management"
)


def data_cpus(there: CpuLayout, node: TgNode | DutNode) -> tuple[int, ...]:
    """Logical CPUs that may have data threads: all of the NUMA node where plans that do not fit share cores."""
    shares = isinstance(node, DutNode) and node.oversubscribe
    every = tuple(sorted(cpu for core in there.cores(node.numa_node) for cpu in core))
    return every if shares else planned_cpus(there, node) or every


def observe(
    connection: Connection | None,
    cpus: Collection[int],
    duration_s: float,
    *,
    python: str = "python3",
    root: bool = True,
    machine: str | None = None,
) -> tuple[CpuNoise, ...]:
    """Observe idle CPUs, all at the same time. Threads that run there wait meanwhile.

    `connection`: To the machine; None for this one.
    `duration_s`: At most 10; at most 0.9 where real-time threads are throttled.
    `machine`: The node, for the result; None for the (first) DUT.

    Raises:
        CsitError: The machine cannot be asked, or answers with something else.
    """
    asked = {"cpus": sorted(cpus), "duration_s": duration_s}
    with or_here(connection, python) as (way, its_python):
        answer = ask(way, noise, asked, python=its_python, within_s=duration_s + _MORE_S, root=root)
    for cpu, why in answer.get("refused", ()):
        _log.warning("%s: the noise floor of CPU %s is not known: %s", way.name, cpu, why)
    try:
        return _ROWS.validate_python([{**row, "machine": machine} for row in answer["rows"]])
    except (KeyError, TypeError, ValidationError) as error:
        raise CsitError(f"{way.name}: the noise floor is not of this version: {error_text(error)}") from error


def check_cpu_noise(place: str, rows: Sequence[CpuNoise]) -> Iterator[CheckFinding]:
    """Findings about observed CPUs of one machine."""
    if not rows:
        return
    longest_ns, share = max(row.longest_ns for row in rows), max(row.share for row in rows)
    text = in_words(rows)
    if not all(row.real_time for row in rows):
        text += "; observed without real-time priority, so other programs count"
    if smis := sum(row.smis or 0 for row in rows):
        text += f"; {smis} System Management Interrupts"
    if stolen_s := sum(row.stolen_s or 0.0 for row in rows):
        text += f"; the hypervisor took {stolen_s:.2g} s"
    if longest_ns > _LONGEST_NS:
        limit_pps = QUEUE_FRAMES / (longest_ns * 1e-9)
        text += f"; at more than {rate(limit_pps)} a receive queue of {QUEUE_FRAMES} frames overflows meanwhile"
        yield warning(place, "noise", f"{text} (longer than {latency(_LONGEST_NS)})", _NOISE_FIX)
    elif share > _NOISE_SHARE:
        yield warning(place, "noise", f"{text} (more than {100 * _NOISE_SHARE:g} %)", _NOISE_FIX)
    else:
        yield ok(place, "noise", text)
