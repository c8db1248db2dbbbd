"""The doctor: examines all machines of a testbed at the same time; reports what is wrong and how to fix it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from itertools import chain

from pydantic import ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import ConfigError, CsitError, Unsupported
from resources.libraries.python.model.driver import Driver, FunctionDriver, InstalledProgram, RequiredProgram
from resources.libraries.python.model.findings import CheckFinding, Severity, ok, problem, warning
from resources.libraries.python.model.testbed import topology as model
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.physical_ports import located
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.kinds.factory import make_testbed
from resources.libraries.python.testbed.maintenance.machines import Machines, MaintainedMachine
from resources.libraries.python.testbed.node.checks import ports, processors, system
from resources.libraries.python.testbed.node.checks.processors import data_cpus, observe
from resources.libraries.python.testbed.node.energy import is_remote, read_meter
from resources.libraries.python.testbed.node.facts import Facts, drivers_of, gather, kernel_features_of
from resources.libraries.python.testbed.node.reservation import holder_of


def _of_declared(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    """Yield findings about what the drivers of a node need.

    In the local world both nodes are on one machine, and drivers themselves try what they need there.
    """
    lab = topology.world is World.LAB
    for each, node in {name: topology.nodes[name]}.items() if lab else topology.nodes.items():
        place = f"nodes.{each}"
        found = chain.from_iterable(part(place, node, facts, lab=lab) for part in (_programs, _kernel, _of_packages))
        yield from (finding for finding in found if lab or finding.level is not Severity.PROBLEM)


def _programs(place: str, node: TgNode | DutNode, facts: Facts, *, lab: bool) -> Iterator[CheckFinding]:
    needed: dict[str, tuple[RequiredProgram, list[Driver]]] = {}
    for driver in drivers_of(node):
        if lab or not isinstance(driver, FunctionDriver):
            for program in driver.programs:
                if program.version is not None:
                    needed.setdefault(program.on(node), (program, []))[1].append(driver)
    for where, (program, drivers) in needed.items():
        place_of = f"{place}.{program.option}" if program.option else place
        found = _installed(place_of, program.label, facts.driver_needs.programs[where], where, program.remedy)
        yield _demoted(found, drivers, node)


def _kernel(place: str, node: TgNode | DutNode, facts: Facts, *, lab: bool) -> Iterator[CheckFinding]:
    there = []
    for feature, drivers in kernel_features_of(node).items():
        has = facts.driver_needs.kernel[feature.label]
        if has:
            there.append(feature.label)
        elif has is False and lab:
            users = " and ".join(dict.fromkeys(driver.label for driver in drivers))
            text = f"no {feature.label}, for {users}"
            fix = f"boot a kernel with CONFIG_{feature.config}"
            if feature.instead:
                yield warning(place, "kernel", f"{text}: {feature.instead}", fix)
            else:
                yield _demoted(problem(place, "kernel", text, fix), drivers, node)
    if there:
        yield ok(place, "kernel", f"has {', '.join(dict.fromkeys(there))}")


def _of_packages(place: str, node: TgNode | DutNode, facts: Facts, *, lab: bool) -> Iterator[CheckFinding]:
    for each in driver_registry.node_checks():
        if each.key in facts.packages and each.arguments(node) is not None and (lab or not each.lab_only):
            try:
                yield from driver_registry.load(each.check)(place, node, facts.packages[each.key])
            except ValidationError as error:
                fix = f"look at what {each.script} returns there"
                yield problem(place, each.key, f"unexpected answer: {error.error_count()} errors", fix)


def _demoted(finding: CheckFinding, drivers: Sequence[Driver], node: TgNode | DutNode) -> CheckFinding:
    """Make a problem of optional NFs alone a warning: runs go on without them."""
    if finding.level is Severity.PROBLEM and all(_is_optional(driver, node) for driver in drivers):
        return finding.model_copy(update={"level": Severity.WARNING})
    return finding


def _is_optional(driver: Driver, node: TgNode | DutNode) -> bool:
    return (
        isinstance(driver, FunctionDriver)
        and driver.on_request
        and isinstance(node, DutNode)
        and driver.name != node.containers[0]
    )


def _installed(place: str, what: str, program: InstalledProgram, where: str, fix: str) -> CheckFinding:
    if not program.there:
        return problem(place, what, f"{where} is not there", fix)
    if program.problem:
        return problem(place, what, f"{where} does not run: {program.problem}", fix)
    return ok(place, what, program.version or "of an unknown version")


WITHIN_S = 120.0
"""For all machines together, which are examined in parallel."""
_REACH_S = 30.0
_NOISE_S = 0.5
_ENERGY_S = 0.5


def examine(
    topology: model.Topology, *, thorough: bool = False, report: Callable[[str], None] = lambda _: None
) -> list[CheckFinding]:
    """Look at a testbed. Nothing on it is changed."""
    findings: list[CheckFinding] = []
    facts: dict[str, Facts] = {}
    with Machines(topology) as machines:
        if machines.places:
            report(f"asking {', '.join(machines.places)}")
        pool = ThreadPoolExecutor(max(1, len(machines.places)))
        futures = {name: pool.submit(_look, topology, place) for name, place in machines.places.items()}
        for name, future in futures.items():
            found, its = _in_time(future, name)
            findings += found
            if its is not None:
                facts[name] = its
                findings += check_node(_completed(topology, name, its), name, its)
        pool.shutdown(wait=False, cancel_futures=True)
    findings += check_together(topology, facts)
    findings += _of_api(topology)
    if topology.world is not model.World.LAB or (thorough and len(facts) == len(topology.machines)):
        report("trying what drivers need")
        findings += _of_drivers(topology, make_testbed(topology))
    return findings


def _completed(topology: model.Topology, name: str, facts: Facts) -> model.Topology:
    """Fill in the NUMA nodes of ports that the file does not have; wrong ones are a finding of their own."""
    if name not in topology.nodes:
        return topology
    there = {port: None if row is None else row.numa_node for port, row in facts.ports.ports.items()}
    configured = {port: each.numa_node for port, each in topology.nodes[name].interfaces.items()}
    unknown = {port: node for port, node in there.items() if configured.get(port) is None}
    try:
        return located(topology, {name: unknown})
    except ConfigError:  # ports on several NUMA nodes: a run says so
        return topology


def _in_time(
    future: Future[tuple[list[CheckFinding], Facts | None]], name: str
) -> tuple[list[CheckFinding], Facts | None]:
    try:
        return future.result(WITHIN_S)
    except Late:
        text = f"no answer within {WITHIN_S:.0f} s"
        return [problem(f"nodes.{name}", "reach", text, "look at it from its console: dmesg | tail")], None


def _look(topology: model.Topology, place: MaintainedMachine) -> tuple[list[CheckFinding], Facts | None]:
    """One machine: whether it can be reached, then all facts in one round trip."""
    where = f"nodes.{place.name}"
    try:
        done = place.connection.run(["id", "-un"], within_s=_REACH_S)
    except (CsitError, OSError) as error:
        return [problem(f"{where}.access", "reach", *_mended(error))], None
    access = topology.nodes[place.name].access
    at = f"{access.host}:{access.port}" if access else "this machine"
    findings = [ok(f"{where}.access" if access else where, "reach", f"{done.stdout.strip() or 'unknown user'} at {at}")]
    facts, found = _facts(place)
    findings += found
    if facts is not None:
        findings.append(_reservation(place))
        findings += _noise(topology, place, facts)
        findings += _energy(topology, place, facts)
    return findings, facts


def _facts(place: MaintainedMachine) -> tuple[Facts | None, list[CheckFinding]]:
    """With root's rights, or without where they are not given: then the rest is known at least."""
    where, found = f"nodes.{place.name}", list[CheckFinding]()
    root = place.nodes[0].access is not None
    try:
        if root and (refused := _refused(place)):
            fix = "as root: echo 'USER ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/csit; or access.user: root"
            found.append(problem(f"{where}.access.become", "sudo", refused, fix))
            root = False
        return gather(place.connection, place.nodes, place.python, root=root), found
    except CsitError as error:
        fix = "look at it from its console: dmesg | tail"
        if isinstance(error, Unsupported):
            fix = "install Python 3.11 or newer there, and name it in access.python"
        found.append(problem(f"{where}.access.python", "facts", _sentence(error), fix))
    return None, found


def _noise(topology: model.Topology, place: MaintainedMachine, facts: Facts) -> Iterable[CheckFinding]:
    """Observe the CPUs that plans use, unless a run is using them."""
    where = f"nodes.{place.name}"
    if facts.leftovers.in_use:
        return [ok(where, "noise", "not observed while a run is active")]
    node = topology.nodes[place.name]
    cpus = {row[0] for row in facts.machine.cpu.rows}.intersection(data_cpus(facts.layout_of(node), node))
    root = facts.machine.uid == 0 and node.access is not None
    try:
        observed = observe(place.connection, cpus, _NOISE_S, python=place.python, root=root)
    except CsitError as error:
        return [warning(where, "noise", _sentence(error), "look at it from its console: dmesg | tail")]
    return processors.check_cpu_noise(where, observed)


def _energy(topology: model.Topology, place: MaintainedMachine, facts: Facts) -> Iterable[CheckFinding]:
    where, node = f"nodes.{place.name}", topology.nodes[place.name]
    root = is_remote(node.energy) or (facts.machine.uid == 0 and node.access is not None)
    try:
        found = read_meter(place.name, node.energy, _ENERGY_S, place.connection, python=place.python, root=root)
    except CsitError as error:
        return [warning(f"{where}.energy", "energy", _sentence(error), "docs/how-to/measure-energy.md")]
    return system.check_energy_meter(where, node.energy, found)


def _refused(place: MaintainedMachine) -> str:
    """Why root's rights are not to be had; empty where they are."""
    try:
        place.connection.run(["true"], within_s=_REACH_S, root=True)
    except CsitError as error:
        return _sentence(error)
    return ""


def _mended(error: Exception) -> tuple[str, str]:
    text = _sentence(error)
    if "host key" in text or "known_hosts" in text:
        return text, "compare the fingerprints first"
    if isinstance(error, ConfigError):
        return text, "correct `access` in the topology"
    return text, "try by hand: ssh -v, with the same user, port and jump hosts"


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())[:600]


def _reservation(place: MaintainedMachine) -> CheckFinding:
    where = f"nodes.{place.name}"
    try:
        holder, _ = holder_of(place.reservable)
    except CsitError as error:
        return problem(where, "reservation", _sentence(error), "look at the file, then ./csit release TOPOLOGY --force")
    if holder is None or holder.left_s <= 0:
        return ok(where, "reservation", "free" if holder is None else f"free: {holder}")
    return ok(where, "reservation", f"{holder}")


def _of_api(topology: model.Topology) -> Iterable[CheckFinding]:
    """Problems of the generator of a lab that the controller drives over its API."""
    make = driver_registry.generators()[topology.tg.generator.driver].api
    if topology.world is not World.LAB or make is None:
        return
    place, problems = f"nodes.{topology.tg_name}", driver_registry.load(make)(topology.tg).problems()
    for found in problems:
        yield problem(place, "generator", found.what, found.fix)
    if not problems:
        yield ok(place, "generator", "its API answers; ports are tried when a run starts")


def _of_drivers(topology: model.Topology, world: Testbed) -> Iterable[CheckFinding]:
    """Requirements that drivers find missing by trying."""
    place = "nodes" if topology.world is model.World.LAB else f"nodes.{next(iter(topology.duts))}"
    kinds = ((world.problems, problem), (world.warnings, warning), (world.unsampled, warning))
    try:
        rows = [(make, found) for all_of, make in kinds for found in all_of()]
    finally:
        world.close()
    for make, found in rows:
        yield make(place, "drivers", found.what, found.fix)
    if not rows:
        yield ok(place, "drivers", "have all they need")


def check_node(topology: Topology, name: str, facts: Facts) -> list[CheckFinding]:
    """Findings from the facts of one node.

    `name`: The node's; in the local world the DUT's, on whose machine everything is.
    """
    checks = [system.check, processors.check, system.check_memory, _of_declared]
    if topology.world is World.LAB:
        checks.append(ports.check)
    return [finding for check in checks for finding in check(topology, name, facts)]


def check_together(topology: Topology, facts: Mapping[str, Facts]) -> list[CheckFinding]:
    """Findings from the facts of several nodes together: clocks, both ends of cables."""
    return [*system.check_clocks(facts), *ports.check_cables(topology, facts)]
