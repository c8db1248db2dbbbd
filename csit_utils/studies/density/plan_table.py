"""The plan of a matrix with the time it takes, and of one cell, for a terminal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from csit_utils.commands.tables import TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import DASH, rate, seconds
from resources.libraries.python.model.bounds import refuse_endless
from resources.libraries.python.model.core_map import Thread, ThreadRole
from resources.libraries.python.model.findings import Limit
from resources.libraries.python.model.plan import Flow, Plan, Port
from resources.libraries.python.model.request.cell import Dimensions, Frame, ServiceType, TestType
from resources.libraries.python.model.request.goal import SearchProfile
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.linerate import max_rate
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.physical_ports import how
from resources.libraries.python.planning.placement.sender_threads import too_few_senders
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.density.planning.extras import MAX_FACTOR, MIN_FACTOR, Extras, test_s
from resources.libraries.python.studies.density.planning.matrix import Candidate

SIMULATED_TEST_S = 0.1
"""Real time of a simulated test; 84 tests took 6 s."""


@dataclass(frozen=True)
class SuiteTime:
    """One suite: a service type and a test type."""

    suite: str
    tests: int
    seconds: float


@dataclass(frozen=True)
class Times:
    """All suites of a selection."""

    profile: str
    suites: tuple[SuiteTime, ...]
    simulated: bool
    """The seconds are those of a virtual clock."""

    @property
    def tests(self) -> int:
        """Number of tests of all suites."""
        return sum(suite.tests for suite in self.suites)

    @property
    def seconds(self) -> float:
        """Time of all suites."""
        return sum(suite.seconds for suite in self.suites)

    @property
    def real_seconds(self) -> float:
        """Wall-clock time."""
        return SIMULATED_TEST_S * self.tests if self.simulated else self.seconds

    def error(self) -> str:
        """How far the estimate may be off, in words."""
        return f"a single test takes {MIN_FACTOR:g} to {MAX_FACTOR:g} times its estimate, many together are within 15 %"


def times(
    topology: Topology,
    rows: Sequence[Candidate],
    profile: SearchProfile,
    test_types: Iterable[TestType],
    *,
    extras: Extras = Extras(),  # noqa: B008 - frozen
) -> Times:
    """Estimate the time of every suite.

    `topology`: the testbed, whose world decides the time lost around a trial.
    `rows`: the cells; those that run are counted, a test for each frame size that can be sent through.

    Raises:
        ConfigError: More measurements, or more time, than `model.bounds` allows.
    """
    suites = []
    for service_type in ServiceType:
        own = [row for row in rows if row.cell.service_type is service_type]
        running = [row for row in own if row.runs]
        for test_type in test_types if own else ():
            seconds = sum(len(row.frames) * test_s(topology, row.cell, profile, test_type, extras) for row in running)
            name = f"{service_type.lower()}-{test_type.lower()}"
            suites.append(SuiteTime(name, sum(len(row.frames) for row in running), seconds))
    found = Times(profile.name, tuple(suites), topology.world is World.SIM)
    refuse_endless("this selection", found.tests, "tests", found.seconds)
    return found


LETTERS = {
    Limit.CORES: ("C", "cores"),
    Limit.CACHE: ("W", "cache ways"),
    Limit.MEMORY: ("M", "memory"),
    Limit.HUGEPAGES: ("H", "huge pages"),
    Limit.ADDRESSES: ("A", "addresses"),
    Limit.SMT: ("S", "SMT for half cores"),
    Limit.KIND: ("K", "a driver for these NFs"),
    Limit.TRAFFIC: ("T", "traffic that these NFs take"),
    Limit.LINKS: ("L", "cables"),
    Limit.DISCRIMINATOR: ("D", "drivers that support the discriminator"),
}
"""Resources that a cell lacks: their letters and names."""


def print_plan(rows: Sequence[Candidate], times: Times) -> None:
    """Print a matrix for each service type and size, then reasons and time."""
    for (kind, size, nf_kinds, vs_dtc), group in groupby(rows, key=_group):
        title = f"{kind}  NF-{size}{'  ' + nf_kinds if nf_kinds else ''}  vSwitch-{vs_dtc}c"
        _print_matrix(title, list(group))
    limits = {reason.limit for row in rows if not row.runs for reason in row.reasons}
    letters = ", ".join(" ".join(words) for limit, words in LETTERS.items() if limit in limits)
    print_sentence("Numbers: physical cores of a cell, system core included. *: queues or threads are uneven.")
    if letters:
        print_sentence(f"Not enough: {letters}.")
    fits, runs = sum(row.fits for row in rows), sum(row.runs for row in rows)
    print_sentence(
        f"{counted(len(rows), 'cell')}: {fits} fit, {runs - fits} run oversubscribed, {len(rows) - runs} do not."
    )
    lists = (
        ("Why not", examples(row for row in rows if not row.runs)),
        ("Also", examples((row for row in rows if not row.runs), others=True)),
        ("Frames", untaken(row for row in rows if row.runs)),
        ("Oversubscribed", examples(row for row in rows if row.runs)),
        ("Uneven", uneven(rows)),
        ("Queues", unspread(rows)),
        ("Shared", shared(rows)),
        ("Cores", unlike(rows)),
    )
    for heading, found in lists:
        for example, count in found:
            print_sentence(f"  {heading}: {example}" + (f" (and {count - 1} similar cells)" if count > 1 else ""))
    _print_times(times)


def _print_times(times: Times) -> None:
    rows = [(suite.suite, str(suite.tests), seconds(suite.seconds) if suite.tests else DASH) for suite in times.suites]
    rows.append(("all", str(times.tests), seconds(times.seconds)))
    heads = ("suite", "tests", f"about, with {times.profile}")
    print_table(heads, [TableLine(row, {}) for row in rows], TableForm.TABLE, ("suite",))
    print_sentence(f"Times are estimates: {times.error()}.")
    if times.simulated:
        print_sentence(f"They are virtual time; in real time all tests take about {seconds(times.real_seconds)}.")


def _group(row: Candidate) -> tuple[str, str, str, int]:
    return row.cell.service_type.value, row.cell.size_name, "+".join(row.cell.nf_kinds), row.cell.vs_dtc


def _print_matrix(title: str, rows: Sequence[Candidate]) -> None:
    """Print a matrix, or a sentence where none of its cells runs."""
    if not any(row.runs for row in rows):
        print_sentence(f"{title}: no cell fits: {rows[0].reason}\n")
        return
    columns = sorted({row.cell.nf_nodes for row in rows})
    by_point = {row.cell.dimensions: row for row in rows}
    lines = [
        TableLine((str(chains), *(_mark(by_point.get(Dimensions(chains, column))) for column in columns)), {})
        for chains in sorted({chains for chains, _ in by_point})
    ]
    print_sentence(title)
    print_table(("instances \\ NFs", *map(str, columns)), lines, TableForm.TABLE)
    print_sentence("")


def mark(row: Candidate) -> str:
    """A cell in a few characters: cores it takes, or letters of what is missing."""
    if row.cores is None:
        return "".join(LETTERS[reason.limit][0] for reason in row.reasons)
    return f"{row.cores.cores_needed}{'*' if row.balance and not row.balance.even else ''}"


def _mark(row: Candidate | None) -> str:
    if row is None:
        return ""
    return f"{mark(row)} over" if row.oversubscribed else mark(row)


def examples(rows: Iterable[Candidate], *, others: bool = False) -> list[tuple[str, int]]:
    """The first example of each kind of reason, and how many there are: those that differ only in numbers are one.

    `others`: Of reasons beside the first one of each cell, so that each cell counts once.
    """
    return _grouped((row, reason.text) for row in rows for reason in row.reasons[others : None if others else 1])


def untaken(rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """The same for frame sizes that cannot be sent through cells that run with others."""
    return _grouped((row, f"{frame.name}: {reason}") for row in rows for frame, reason in row.not_taken.items())


def uneven(rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """The same for queues and threads of cells that run."""
    return _grouped((row, text) for row in rows if row.balance for text in row.balance.uneven())


def shared(rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """The same for siblings of cells where different NFs share a core: one NF has siblings wherever SMT is on."""
    found = ((row, row.balance) for row in rows if row.balance and row.balance.sibling_nfs)
    return _grouped((row, text) for row, balance in found for text in balance.siblings())


def unlike(rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """The same for kinds of cores and last-level caches."""
    return _grouped((row, text) for row in rows for text in row.core_notes)


def unspread(rows: Iterable[Candidate]) -> list[tuple[str, int]]:
    """The same for flows that do not reach every data thread of a vSwitch."""
    return _grouped((row, text) for row in rows for text in row.port_warnings)


def _grouped(labelled: Iterable[tuple[Candidate, str]]) -> list[tuple[str, int]]:
    kinds: dict[str, list[str]] = {}
    for row, text in labelled:
        kinds.setdefault(re.sub(r"\d+( physical cores?)?", "n", text), []).append(f"{row.cell.name}: {text}")
    return [(found[0], len(found)) for found in kinds.values()]


def print_cell(row: Candidate, plan: Plan | None, frames: Sequence[Frame] = ()) -> None:
    """Print all of one cell.

    `plan`: its plan; None where it cannot run.
    `frames`: frame sizes for the line rate, if the cables of a lab have one.
    """
    state = "fits" if row.fits else "runs oversubscribed" if row.runs else "does not fit"
    print_sentence(f"{row.cell.name}: {state}")
    for reason in row.reasons:
        print_sentence(f"  {reason.text}")
    if plan is None or row.balance is None:
        return
    untaken = (f"{frame.name}: {reason}" for frame, reason in row.not_taken.items())
    for text in (*untaken, *row.balance.uneven(), *row.port_warnings, *row.balance.siblings(), *row.core_notes):
        print_sentence(f"  {text}")
    cores = plan.cores
    print_sentence(
        f"  {cores.cores_needed} physical cores of {cores.cores_there} on NUMA {cores.numa_node}, "
        f"SMT {'on' if cores.smt else 'off'}; suite {plan.suite_id}"
    )
    for frame in frames:
        if highest := max_rate(plan, frame):
            flow, both = rate(highest.flow_pps), rate(highest.aggregate_pps)
            print_sentence(f"  {frame.name}: at most {both}, {flow} for each instance and direction ({highest.reason})")
        if short := too_few_senders(plan, frame):
            print_sentence(f"  {short}")
    _print_cores("Thread to core map", plan.cores.physical, cores.on(None))
    for each in plan.cores.elsewhere:
        _print_cores(f"Thread to core map of {each.machine}", each.physical, cores.on(each.machine))
    if plan.cache:
        _print("Ways of the last-level cache", ("owner", "CPUs", "cache", "ways", "mask"), _cache(plan))
    copied = any(segment.copies for segment in plan.segments)
    _print(
        "Segments of the vSwitch",
        ("segment", "instance", "joins", *(["copies to"] if copied else [])),
        (
            (each.name, str(each.instance), " - ".join(each.members), *([", ".join(each.copies)] if copied else []))
            for each in plan.segments
        ),
    )
    _print(
        "Links",
        ("from", "to", "medium"),
        ((_end(plan, link.a), _end(plan, link.b), link.medium) for link in plan.links),
    )
    _print("Receive queues", ("port", "queue", "data thread", "CPU"), _queues(plan))
    _print("NFs", ("NF", "kind", "size", "address", "route"), _functions(plan))
    _print("Flows", ("instance", "direction", "from", "to", "source", "destination"), map(_flow, plan.flows))


def _print(title: str, heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a table of words below an empty line."""
    print_sentence(f"\n{title}")
    print_table(heads, [TableLine(row, {}) for row in rows], TableForm.TABLE, heads)


def _print_cores(title: str, physical: Sequence[Sequence[int]], threads: Iterable[Thread]) -> None:
    by_cpu: dict[int, list[str]] = {}
    for thread in threads:
        role = "" if thread.role is ThreadRole.SYSTEM else f" {thread.role} {thread.index}"
        by_cpu.setdefault(thread.cpu, []).append(f"{thread.owner}{role}")
    rows = (
        (str(number), *(f"CPU {cpu}: {', '.join(by_cpu.get(cpu, ['idle']))}" for cpu in core))
        for number, core in enumerate(physical)
    )
    _print(title, ("core", *(f"thread {number}" for number in range(max(map(len, physical))))), rows)


def _cache(plan: Plan) -> Iterator[tuple[str, ...]]:
    for part in plan.cache:
        for domain, mask in part.masks.items():
            yield part.owner, part.cpu_list, str(domain), str(mask.bit_count()), f"{mask:#x}"


def _queues(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Which data thread polls each receive queue, and on which CPU; the ports of the generator are its own affair."""
    for port in plan.ports():
        if port.owner == GENERATOR:
            continue
        cpus = plan.cores.cpus(port.owner)
        for queue, thread in enumerate(port.queues):
            name = "" if queue else f"{port.owner} {port.interface}{_place(plan, port)}"
            yield name, str(queue), str(thread), str(cpus[thread])


def _end(plan: Plan, port: Port) -> str:
    """A port, and of a cable which port of which node that is."""
    return f"{port.owner} {port.interface} {port.mac}{_place(plan, port)}"


def _place(plan: Plan, port: Port) -> str:
    if port.nic is None:
        return ""
    vlan = f" VLAN {port.vlan}" if port.vlan is not None else ""
    return f" at {plan.machines[port.owner]}.{port.nic.port}{vlan} by {how(port.nic)}"


def _functions(plan: Plan) -> Iterator[tuple[str, ...]]:
    for function in plan.functions:
        for side in (function.left, function.right):
            route = f"{side.route.prefix} via {side.route.address} {side.route.mac}"
            yield function.name, function.kind, str(function.size), f"{side.name} {side.address}", route
    for tap in plan.taps:
        yield tap.name, tap.kind, str(tap.size), tap.interface, f"passive: copies of {tap.segment}"


def _flow(flow: Flow) -> tuple[str, ...]:
    return (
        str(flow.instance),
        flow.direction,
        f"{flow.tx_interface} {flow.source_mac}",
        f"{flow.rx_interface} {flow.destination_mac}",
        f"{flow.source_ip} and {flow.sources - 1} more",
        flow.destination_ip,
    )
