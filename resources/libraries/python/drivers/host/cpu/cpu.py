"""The machine's logical CPUs as the kernel describes them, their idle states, and findings of the doctor about them."""

import json
import os
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from resources.libraries.python.drivers.host.cpu import core_facts, resctrl
from resources.libraries.python.drivers.host.kernel_files import line_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.findings import CheckFinding, ok, problem, warning
from resources.libraries.python.model.testbed.cpu import KINDS, CpuLayout, expand, layout, ranges, ranked
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode

SYSTEM = Path("/sys/devices/system")
ON = "on"
"""State of SMT; others are `off`, `forceoff`, `notsupported` and `notimplemented`."""
SMT_KEY = "smt"
"""Of leftovers on the record of a machine: SMT that was switched off."""
_RECORD = Path("/run/csit-density/owner.json")


def smt_control(root: Path = SYSTEM) -> str:
    """State of SMT as the kernel has it; empty where it does not say."""
    return line_of(root / "cpu/smt/control") or ""


def discover(root: Path = SYSTEM, allowed: Collection[int] | None = None, record: Path = _RECORD) -> CpuLayout:
    """Read the layout of the CPUs that are online and that this process may use, and how their cache can be divided.

    Those that a run has taken offline with SMT are there, too: if it was killed, the next run switches SMT on before it
    uses them.

    `root`: Where `cpu/` and `node/` are.
    `allowed`: CPUs that may be used; by default those of this process (its affinity, its cgroup's cpuset).
    `record`: Of the run that has the machine, or of one that was killed; another file for tests.

    Raises:
        Unsupported: There is no description, or no CPU that may be used.
    """
    usable = os.sched_getaffinity(0) if allowed is None else allowed
    if smt_control(root) not in ("", ON) and (before := _before_smt_off(record)) is not None:
        cores = {(row.socket, row.core) for row in before.cpus if row.cpu in usable}
        return before.only({row.cpu for row in before.cpus if (row.socket, row.core) in cores})
    rows = [row for row in _rows(root) if row[0] in usable]
    if not rows:
        raise Unsupported(f"none of the CPUs {sorted(usable)} is online in {root}/cpu")
    cache = resctrl.discover(cpus=str(root / "cpu"))
    found = core_facts.answer({"devices": str(root.parent)})
    there = {row[0] for row in rows}
    kinds = {cpu: kind for cpu, kind in kinds_of(found).items() if cpu in there}
    caches = {int(cpu): first for cpu, first in found["last_caches"].items() if int(cpu) in there}
    return layout(rows, kinds, caches).model_copy(update={"cache": cache})


def kinds_of(found: Mapping[str, Any]) -> dict[int, int]:
    """Return the kind of core by logical CPU; empty where all are of one kind, or nothing is known.

    A kernel may have one unit for efficiency cores and low-power ones; their frequencies tell these apart.

    `found`: Answer of `core_facts`.
    """
    speeds = ranked({int(cpu): khz for cpu, khz in found["khz"].items()})
    units = {cpu: rank for rank, text in enumerate(found["units"].values()) for cpu in expand(text)}
    both = {cpu: (units.get(cpu, 0), speeds.get(cpu, 0)) for cpu in units or speeds}
    ranks = {kind: rank for rank, kind in enumerate(sorted(set(both.values())))}
    return {cpu: ranks[kind] for cpu, kind in both.items()} if len(ranks) > 1 else {}


def _before_smt_off(record: Path) -> CpuLayout | None:
    """The CPUs before a run switched SMT off; None where none has, or its record is damaged, as the lock will say."""
    with suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        # Not by the model of the record, which needs the drivers.
        return CpuLayout.model_validate(json.loads(record.read_bytes())[SMT_KEY][0]["layout"])
    return None


def _rows(root: Path) -> Iterator[tuple[int, int, int, int]]:
    """Rows of cpu, core, socket, node, with cores numbered over the machine as `lscpu` does.

    The kernel's own core_id is not unique: it counts anew in every package, in some kernels in every die.
    """
    cores: dict[str, int] = {}
    for cpu in online(root):
        directory = root / "cpu" / f"cpu{cpu}"
        topology = directory / "topology"
        try:
            siblings = (topology / "thread_siblings_list").read_text(encoding="ascii").strip()
            socket = int((topology / "physical_package_id").read_text(encoding="ascii"))
        except FileNotFoundError as error:
            raise Unsupported(f"{topology} does not describe CPU {cpu}") from error
        core = cores.setdefault(siblings, len(cores))
        # -1 where the firmware does not say.
        yield cpu, core, max(0, socket), _node(directory)


def online(root: Path = SYSTEM) -> list[int]:
    """Logical CPUs that are online.

    Raises:
        Unsupported: The kernel does not say.
    """
    try:
        return sorted(expand((root / "cpu" / "online").read_text(encoding="ascii").strip()))
    except FileNotFoundError as error:
        raise Unsupported(f"{root}/cpu/online is missing: no description of CPUs") from error


def _node(directory: Path) -> int:
    """The NUMA node of a CPU; 0 where the kernel knows no nodes."""
    for entry in directory.iterdir():
        if match := re.fullmatch(r"node(\d+)", entry.name):
            return int(match[1])
    return 0


REQUESTS = Path("/dev/cpu_dma_latency")


@contextmanager
def kept_awake(requests: Path = REQUESTS) -> Iterator[None]:
    """Have the idle CPUs of this machine poll for work, by the kernel's PM QoS: nothing else wakes up in time.

    The kernel ends the request with the process that made it, also where that is killed. Where it takes none, CPUs
    sleep as they do otherwise; the environment of each result has it.
    """
    with ExitStack() as held:
        with suppress(OSError):
            asked = held.enter_context(requests.open("r+b", buffering=0))
            asked.write(struct.pack("i", 0))  # microseconds to wake up in
        yield


_UNSEEN = "which plans do not see: the file lists CPUs"


def check(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    """Compare kinds of cores, and groups with a last-level cache of their own, with those that the file states.

    `answer`: of `core_facts`.
    """
    yield from _kinds(place, node, answer)
    yield from _caches(place, node, {int(cpu): first for cpu, first in answer["last_caches"].items()})


def _kinds(place: str, node: TgNode | DutNode, answer: Mapping[str, Any]) -> Iterator[CheckFinding]:
    there, item = kinds_of(answer), "kinds of cores"
    counts = Counter(there.values())
    text = ", ".join(f"{counts[rank]} CPUs of {_kind(rank)} cores" for rank in sorted(counts))
    if node.cpus == "discover":
        if text:
            yield ok(place, item, f"{text}: data threads of a cell are on one kind, the fastest that has enough")
    elif not any(group.kind for group in node.cpus):
        if text:
            yield warning(place, item, f"{text}, {_UNSEEN}", "state `kind`, or say cpus: discover")
    elif answer["units"] or answer["khz"]:
        differing: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in node.layout.cpus:
            pair = there.get(row.cpu, 0), node.layout.kinds.get(row.cpu, 0)
            differing[pair].append(row.cpu)
        wrong = {pair: cpus for pair, cpus in differing.items() if pair[0] != pair[1]}
        for (here, stated), cpus in sorted(wrong.items()):
            what = f"CPUs {ranges(cpus)} are listed as {_kind(stated)} cores, and are {_kind(here)} cores"
            yield problem(f"{place}.cpus", item, what, "correct `kind`, or say cpus: discover")
        if not wrong:
            yield ok(place, item, f"{text or 'one'}, as listed")


def _caches(place: str, node: TgNode | DutNode, there: Mapping[int, int]) -> Iterator[CheckFinding]:
    count, item = len(set(there.values())), "last-level caches"
    if node.cpus == "discover":
        if count > 1:
            what = f"{count}: data threads of a service instance share one where one has enough cores"
            yield ok(place, item, what)
    elif not any(group.cores_per_cache for group in node.cpus):
        if count > 1:
            yield warning(place, item, f"{count}, {_UNSEEN}", "state `cores_per_cache`, or say cpus: discover")
    elif there:
        known = [row.cpu for row in node.layout.cpus if row.cpu in there]
        here, listed = (_sharing(known, caches) for caches in (there, node.layout.last_caches))
        wrong = sorted({here[cpu] for cpu in known if here[cpu] != listed[cpu]})
        for group in wrong:
            what = f"CPUs {ranges(group)} share one; the file has CPU {group[0]} with {ranges(listed[group[0]])}"
            yield problem(f"{place}.cpus", item, what, "correct `cores_per_cache`, or say cpus: discover")
        if not wrong:
            yield ok(place, item, f"{len(set(here.values()))}, as listed")


def _kind(rank: int) -> str:
    return KINDS[min(rank, len(KINDS) - 1)]


def _sharing(cpus: list[int], caches: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """By CPU those that share its cache; all share one where none is known."""
    return {cpu: tuple(other for other in cpus if caches.get(other) == caches.get(cpu)) for cpu in cpus}
