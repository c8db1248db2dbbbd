"""Preparation of the machines of a testbed: settings for repeatable figures, until the testbed is released.

Values and reasons follow FD.io CSIT's role `performance_tuning` and the kernel parameters of its inventories, as far as
they matter to a measurement. What to set follows from the facts of a node and the texts of its settings: at run time,
or by a restart.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from resources.libraries.python.errors import CsitError, InUse
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.cpu import ranges
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.testbed.maintenance.machines import Machines, MaintainedMachine
from resources.libraries.python.testbed.node import reservation
from resources.libraries.python.testbed.node.checks.processors import listed, planned_cpus
from resources.libraries.python.testbed.node.checks.system import huge_pages, uses_dpdk
from resources.libraries.python.testbed.node.facts import Facts, gather
from resources.libraries.python.testbed.node.node_query import ask
from resources.libraries.python.testbed.node.reservation import VARIABLE, Claim
from resources.libraries.python.testbed.node.scripts import tunables

Report = Callable[[str], None]
Files = Mapping[str, str]
"""Texts of settings by path."""
_SYSCTL = "/proc/sys"
_GRUB = "/etc/default/grub"
_MAPS_PER_PAGE = 2
"""DPDK maps every huge page once for itself and once to sort them (sysctl of the role: at least twice the pages)."""
_MAPS_OF_OTHERS = 65530
"""The kernel's own default."""
_WITHIN_S = 120.0
"""Huge pages are cleared one by one, and memory may have to be compacted for them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One file of the kernel and what is to be in it."""

    path: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Preparation:
    """Settings that a node needs."""

    settings: tuple[Setting, ...]
    """Those whose value differs from what is there."""
    stop_irqbalance: bool
    unavailable: tuple[str, ...]
    """Settings that this machine does not have, in sentences."""
    boot: str
    """The line of the boot loader; empty where nothing is missing on the kernel's command line."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """Settings of one name that change from one value to another."""

    name: str
    numbers: tuple[int, ...]
    old: str
    new: str
    why: str

    @property
    def subject(self) -> str:
        """Changes, with numbers."""
        return f"{self.name}{'s' * (len(self.numbers) > 1)} {ranges(self.numbers)}".rstrip()

    def __str__(self) -> str:
        return f"{self.subject}: {self.old} -> {self.new}{f' ({self.why})' if self.why else ''}"


def prepare(topology: Topology, name: str, facts: Facts, files: Files, cells: Collection[Cell] = ()) -> Preparation:
    """Derive the settings of a node.

    `name`: The node's; in the local world the DUT's, on whose machine everything is.
    `files`: Texts of its settings, from `scripts.tunables`.
    `cells`: What is going to be measured, for the number of huge pages; empty for what the topology declares, else
      the smallest cell.
    """
    node = topology.nodes[name]
    there, isolated = {row[0] for row in facts.machine.cpu.rows}, listed(facts.machine.cpu.isolated)
    data = frozenset(planned_cpus(facts.layout_of(node), node)) & there
    # An administrator may have isolated more than plans use. Interrupts stay off those too, where there are others.
    others = sorted(there - data - isolated or there - data)
    rows = [
        *_huge_pages(topology, name, facts, files, cells),
        *_frequency(files),
        *_interrupts(files, data, others),
        *_sysctls(facts, files, others),
    ]
    settings = [row for row in rows if isinstance(row, Setting)]
    settings += _maps({**files, **{row.path: row.value for row in settings}})
    return Preparation(
        settings=tuple(row for row in settings if files.get(row.path) != row.value),
        stop_irqbalance=facts.machine.irqbalance,
        unavailable=tuple(row for row in rows if isinstance(row, str)),
        # A machine that is not of a lab has other work to do, for which it needs its CPUs.
        boot=_boot(topology, name, facts, files, data) if topology.world is World.LAB else "",
    )


def changes(rows: Iterable[tuple[str, str, str]], settings: Collection[Setting] = ()) -> list[SettingChange]:
    """Summarize rows of path, old and new value: those that differ in CPU or interrupt only are one."""
    why = {setting.path: setting.why for setting in settings}
    numbers: dict[tuple[str, str, str, str], list[int]] = {}
    for path, old, new in rows:
        of_kind = numbers.setdefault((_name(path), old, new, why.get(path, "")), [])
        of_kind += [] if (number := _number(path)) is None else [number]
    return [
        SettingChange(name, tuple(sorted(found)), old, new, reason)
        for (name, old, new, reason), found in numbers.items()
    ]


def _number(path: str) -> int | None:
    found = re.search(r"/cpu/cpu(\d+)/|/irq/(\d+)/", path)
    return int(found[1] or found[2]) if found else None


def _name(path: str) -> str:
    if path.startswith(f"{_SYSCTL}/"):
        return path.removeprefix(f"{_SYSCTL}/").replace("/", ".")
    if pages := re.search(r"(?:node/node(\d+)/)?hugepages/hugepages-(\d+)kB/", path):
        where = f" on NUMA {pages[1]}" if pages[1] else ""
        return f"huge pages of {_size(int(pages[2]))}{where}"
    names = {"scaling_governor": "governor of CPU", "smp_affinity_list": "CPUs of interrupt"}
    names |= {"default_smp_affinity": "CPUs of new interrupts (mask)"}
    leaf = path.rpartition("/")[2]
    return names.get(leaf, leaf)


def _size(kb: int) -> str:
    return f"{kb // 2**20} GB" if kb >= 2**20 else f"{kb // 1024} MB"


def _huge_pages(
    topology: Topology, name: str, facts: Facts, files: Files, cells: Collection[Cell]
) -> Iterator[Setting | str]:
    node = topology.nodes[name]
    declared = node.memory if isinstance(node, DutNode) and isinstance(node.memory, tuple) and not cells else ()
    targets = {(row.node, 2048): row.hugepages_2mb for row in declared}
    targets |= {(row.node, 2**20): row.hugepages_1gb for row in declared}
    why = "as the topology declares"
    if not declared:
        _, wanted_mb, what = huge_pages(topology, name, facts, cells)
        free_mb = sum(row.free_hugepage_mb() for row in facts.machine.memory.nodes if row.node == node.numa_node)
        # Those that are taken stay taken: as many come on top.
        more = max(0, -(-(wanted_mb - free_mb) // 2))
        there = files.get(_pages_path(files, node.numa_node, 2048) or "", "0")
        targets = {(node.numa_node, 2048): int(there) + more} if more else {}
        why = f"{what} takes {wanted_mb} MB"
    for (numa, size_kb), count in targets.items():
        path = _pages_path(files, numa, size_kb)
        if path is None and count:
            yield f"huge pages of {_size(size_kb)} on NUMA {numa}: not available here"
        elif path is not None and count > int(files[path]):
            yield Setting(path, str(count), why)


def _pages_path(files: Files, numa: int, size_kb: int) -> str | None:
    end = f"hugepages/hugepages-{size_kb}kB/nr_hugepages"
    own, whole = f"/sys/devices/system/node/node{numa}/{end}", f"/sys/kernel/mm/{end}"
    # Without NUMA the kernel has them for the whole machine.
    nodes = any(path.startswith("/sys/devices/system/node/") for path in files)
    return own if own in files else whole if whole in files and not nodes else None


def _frequency(files: Files) -> Iterator[Setting | str]:
    governors = [path for path in files if path.endswith("/scaling_governor")]
    for path in governors:
        if "performance" in files.get(path.replace("_governor", "_available_governors"), "performance").split():
            yield Setting(path, "performance", "the frequency does not follow the load")
    if not governors:
        yield "governor: not available here, the kernel does not set frequencies"
    root = "/sys/devices/system/cpu"
    why = "the frequency does not depend on how many cores are busy"
    switches = {f"{root}/intel_pstate/no_turbo": "1", f"{root}/cpufreq/boost": "0"}
    there = [Setting(path, value, why) for path, value in switches.items() if path in files]
    if there:
        yield there[0]
    else:
        yield "boost: not available here"


def _interrupts(files: Files, data: Collection[int], others: Collection[int]) -> Iterator[Setting | str]:
    if not others:
        yield "interrupts: they stay, as every CPU is planned for data threads (core_sharing.system_cores: 0)"
        return
    why = "away from the CPUs of data threads"
    for path in sorted(files):
        if path.endswith("/smp_affinity_list"):
            now = listed(files[path])
            if now & set(data):
                yield Setting(path, ranges(sorted(now & set(others)) or others), why)
    path = "/proc/irq/default_smp_affinity"
    if path in files and int(files[path].replace(",", ""), 16) & _bits(data):
        yield Setting(path, _mask(others, like=files[path]), why)


def _bits(cpus: Collection[int]) -> int:
    return sum(1 << cpu for cpu in cpus)


def _mask(cpus: Collection[int], like: str) -> str:
    """A CPU mask in the kernel's form: groups of 32 bits, as wide as another one."""
    digits = f"{_bits(cpus):0{len(like.replace(',', ''))}x}"
    first = len(digits) % 8
    groups = [digits[:first]] * bool(first) + [digits[at : at + 8] for at in range(first, len(digits), 8)]
    return ",".join(groups)


def _sysctls(facts: Facts, files: Files, others: Collection[int]) -> Iterator[Setting]:
    rows = [
        ("kernel/numa_balancing", "0", "its page faults stop threads, and it moves their memory"),
        ("kernel/nmi_watchdog", "0", "it interrupts every CPU, and takes a hardware counter"),
        ("kernel/randomize_va_space", "0", "memory of a program lies in the same place in every run"),
    ]
    if others:
        rows.append(("kernel/watchdog_cpumask", ranges(others), "its timer interrupts no CPU of data threads"))
    if facts.machine.memory.swap_total_mb:
        rows.append(("vm/swappiness", "0", "memory is not swapped out during a trial"))
    for name, value, why in rows:
        path = f"{_SYSCTL}/{name}"
        if path in files:
            yield Setting(path, value, why)


def _maps(files: Files) -> Iterator[Setting]:
    """More memory areas where there are too few for the huge pages that are there then; raised only."""
    path = f"{_SYSCTL}/vm/max_map_count"
    pages = sum(int(text) for at, text in files.items() if re.search(r"/node\d+/hugepages/.*-2048kB/nr_hugepages$", at))
    if path in files and int(files[path]) < _MAPS_PER_PAGE * pages:
        value = str(_MAPS_OF_OTHERS + _MAPS_PER_PAGE * pages)
        yield Setting(path, value, f"DPDK maps each of {pages} huge pages by itself")


def _isolating(key: str, data: Collection[int], words: Iterable[str]) -> str:
    """A parameter with a list of CPUs: the kernel's own where it has them all, else one with those as well."""
    isolated: set[int] = set()
    for word in words:
        if word.startswith(f"{key}="):  # such as isolcpus=managed_irq,domain,2-7,10
            parts = word.removeprefix(f"{key}=").split(",")
            isolated = set(listed(",".join(part for part in parts if part[:1].isdigit())))
            if isolated.issuperset(data):
                return word
    return f"{key}={ranges(sorted(isolated.union(data)))}"


def _boot(topology: Topology, name: str, facts: Facts, files: Files, data: Collection[int]) -> str:
    """GRUB's line with what the kernel's command line lacks; what the node's own line has besides is kept."""
    node = topology.nodes[name]
    there = (facts.machine.command_line or "").split()
    wanted = [_isolating(key, data, there) for key in ("isolcpus", "nohz_full", "rcu_nocbs") if data]
    if uses_dpdk(topology, name) or any(port.pci_address for port in node.interfaces.values()):
        model = (facts.machine.cpu.model or "").upper()
        wanted += ["intel_iommu=on"] if "INTEL" in model or "XEON" in model else []
        wanted += ["iommu=pt"]
    memory = node.memory if isinstance(node, DutNode) and isinstance(node.memory, tuple) else ()
    big = sum(row.hugepages_1gb for row in memory)
    if big and "hugepagesz=1G" not in there:
        wanted += ["default_hugepagesz=2M", "hugepagesz=1G", f"hugepages={big}"]
    if all(word in there for word in wanted):
        return ""
    own = re.search(r'^GRUB_CMDLINE_LINUX="?([^"\n]*)"?\s*$', files.get(_GRUB, ""), re.MULTILINE)
    keys = {word.partition("=")[0] for word in wanted}
    kept = [word for word in own[1].split() if word.partition("=")[0] not in keys] if own else []
    return f'GRUB_CMDLINE_LINUX="{" ".join([*kept, *wanted])}"'


def is_prepared(place: MaintainedMachine) -> bool:
    """Whether a machine has settings to put back.

    Raises:
        InUse: It has, and a run is alive there that began with them.
    """
    left = place.leftovers(root=False)
    if left.prepared and left.in_use:
        raise InUse(f"{place.name}: a run is active; restore its settings after it ends, or use --force")
    return left.prepared is not None


def restore(place: MaintainedMachine) -> tuple[str, ...]:
    """Put back what was there before `apply`; nothing where it was not, or where the node has restarted since.

    Returns:
        A sentence for each setting.

    Raises:
        CsitError: The record cannot be read, or some could not be put back; the text says which. They stay on record.
    """
    answer = ask(place.connection, tunables, {"do": "restore"}, python=place.python, within_s=_WITHIN_S)
    failed = ["irqbalance could not be started again"] if answer["irqbalance"] is False else []
    if refused := [*_refused(answer["failed_paths"]), *failed]:
        raise CsitError(f"{place.name}: {'; '.join(refused)}")
    done = [*map(str, changes((path, old, new) for path, old, new in answer["restored"]))]
    if answer["irqbalance"]:
        done.append("irqbalance: started again")
    if answer["restarted"]:
        done.append("it has restarted since it was prepared, and has the settings of its start")
    return tuple(f"{place.name}: {line}" for line in done)


def _refused(rows: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """One sentence for settings of a kind that are refused for one reason."""
    kinds = changes((path, "", why) for path, why in rows)
    return tuple(f"{each.subject}: left unchanged: {each.new}" for each in kinds)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Required and present settings of a machine."""

    machine: str
    wanted: Preparation
    changes: tuple[SettingChange, ...]
    busy: str
    """Why nothing can be changed now; empty where it can."""
    prepared: bool
    """It was prepared before, and its settings of before that are on record."""


@dataclass(frozen=True, slots=True)
class PreparationResult:
    """Outcome of preparing a machine."""

    proposal: Proposal
    lines: tuple[str, ...]
    """Changes, and refusals of the kernel; a sentence each."""
    short: tuple[str, ...]
    """Settings that got less than asked for, a sentence each."""


def propose(machines: Machines, cells: Collection[Cell] = ()) -> list[Proposal]:
    """Look at all machines side by side. Nothing is changed.

    `cells`: What is going to be measured; empty for what the topology declares, else the smallest cell.

    Raises:
        CsitError: One cannot be asked.
    """
    with ThreadPoolExecutor(max(1, len(machines.places))) as pool:
        return list(pool.map(lambda place: _propose(machines.topology, place, cells), machines.places.values()))


def _propose(topology: Topology, place: MaintainedMachine, cells: Collection[Cell]) -> Proposal:
    root = place.nodes[0].access is not None
    facts = gather(place.connection, place.nodes, place.python, root=root)
    files = dict(ask(place.connection, tunables, {"do": "look"}, python=place.python, root=False)["files"])
    wanted = prepare(topology, place.name, facts, files, cells)
    rows = [(setting.path, files[setting.path], setting.value) for setting in wanted.settings]
    left, busy = facts.leftovers, ""
    if left.in_use:
        busy = f"a run is alive there, {left.who}"
    elif left.settings:
        busy = "a run that was killed has left settings changed; ./csit cleanup TOPOLOGY --yes puts them back"
    return Proposal(place.name, wanted, tuple(changes(rows, wanted.settings)), busy, prepared=left.prepared is not None)


def apply(
    machines: Machines, proposals: Collection[Proposal], reason: str, lease_s: float, *, wait_s: float, report: Report
) -> tuple[str | None, list[PreparationResult]]:
    """Change what was proposed, under a reservation: the one in the environment, or one that is taken now.

    All machines or none: where one fails, the others are put back, and a reservation taken for this is given back. A
    machine that was prepared before stays so.

    `lease_s`: For how long a new reservation is.
    `wait_s`: How long to wait for others.

    Returns:
        The token of a reservation that was taken, which belongs into the environment variable CSIT_RESERVATION; and
        what came of it.

    Raises:
        InUse: A machine is reserved by another user, or a run is alive there.
        CsitError: A machine cannot be asked or changed.
    """
    claim = Claim(machines.topology.metadata.name, reason, lease_s)
    with ExitStack() as undo:
        joined = bool(os.environ.get(VARIABLE)) and reservation.join(machines.reservable)
        if not joined:
            for sentence in reservation.acquire_within(
                machines.reservable, claim, wait_s, report, machines.refuse_in_use
            ):
                report(sentence)
            undo.callback(reservation.release, machines.reservable, claim.token)
        for each in proposals:
            if each.busy:
                raise InUse(f"{each.machine}: {each.busy}")
        done = []
        for each in proposals:
            place = machines.places[each.machine]
            if not each.prepared:
                undo.callback(restore, place)
            done.append(_tune(place, each, claim.owner))
        undo.pop_all()
    return (None if joined else claim.token), done


def _tune(place: MaintainedMachine, proposal: Proposal, by: str) -> PreparationResult:
    """Change the settings of a machine; what was there is on record before the first one is changed.

    Raises:
        CsitError: It cannot be done, such as for want of root's rights.
    """
    wanted = proposal.wanted
    value = {setting.path: setting.value for setting in wanted.settings}
    asked = {
        "do": "apply", "by": by, "settings": list(value.items()), "stop_irqbalance": wanted.stop_irqbalance,
    }  # fmt: skip
    answer = ask(place.connection, tunables, asked, python=place.python, within_s=_WITHIN_S)
    wrong = [(path, value[path], new) for path, _, new in answer["changed"] if new != value[path]]
    lines = [*map(str, changes(((path, old, new) for path, old, new in answer["changed"]), wanted.settings))]
    if answer["irqbalance"]:
        lines.append("irqbalance: stopped (it moves interrupts while packets are measured)")
    lines += _refused(answer["refused"])
    if answer["irqbalance"] is False:
        lines.append("irqbalance could not be stopped")
    short = (f"{each.subject}: asked for {each.old}, got {each.new}" for each in changes(wrong))
    return PreparationResult(proposal, tuple(lines), tuple(short))
