"""Programs that the testbed names, and what virtual machines and containers need."""

from collections.abc import Iterator

from resources.libraries.python.drivers.functions.vm.registration import Vm
from resources.libraries.python.model.driver import Driver, FunctionDriver, RequiredProgram
from resources.libraries.python.model.nodes import DutNode, TgNode
from resources.libraries.python.model.topology import Topology, World
from resources.libraries.python.testbed.node.checks.finding import CheckFinding, Severity, ok, problem, warning
from resources.libraries.python.testbed.node.fact_collection import drivers_of
from resources.libraries.python.testbed.node.facts import Facts, ProgramFacts

_REMEDIES = {
    "podman": "apt-get install --no-install-recommends podman runc",
    "docker": "systemctl start docker",
}


def check(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
    """Findings about a node's programs.

    In the local world both nodes are on one machine, and what is missing there is known to the drivers, which try.
    """
    lab = topology.world is World.LAB
    for each, node in {name: topology.nodes[name]}.items() if lab else topology.nodes.items():
        found = (
            _generator(f"nodes.{each}", node, facts)
            if isinstance(node, TgNode)
            else _system_under_test(f"nodes.{each}", node, facts, topology.world)
        )
        yield from (finding for finding in found if lab or finding.level is not Severity.PROBLEM)


def _generator(place: str, node: TgNode, facts: Facts) -> Iterator[CheckFinding]:
    trex = facts.programs.trex
    if node.generator.driver != "trex" or trex is None:
        return
    if not trex.there:
        text = f"{trex.directory} has no TRex that can be run"
        fix = "unpack a release there (https://trex-tgn.cisco.com/trex/release), or say trex.directory"
        yield problem(f"{place}.trex.directory", "TRex", text, fix)
    elif not trex.client:
        text = f"{trex.directory} has a TRex without its client library (automation/trex_control_plane/interactive)"
        yield problem(f"{place}.trex.directory", "TRex", text, "unpack the whole release")
    else:
        yield ok(
            place, "TRex", f"{trex.version or 'of an unknown version'} in {trex.directory}, with its client library"
        )


def _system_under_test(place: str, node: DutNode, facts: Facts, world: World) -> Iterator[CheckFinding]:
    needed: dict[str, tuple[RequiredProgram, list[Driver]]] = {}
    for driver in drivers_of(node):
        if world is World.LAB or not isinstance(driver, FunctionDriver):
            for program in driver.programs:
                if program.version is not None:
                    needed.setdefault(program.on(node), (program, []))[1].append(driver)
    for where, (program, drivers) in needed.items():
        place_of = f"{place}.{program.option}" if program.option else place
        found = _installed(place_of, program.label, facts.programs.drivers[where], where, program.remedy)
        # Runs go on without NFs that are there on request only.
        optional = all(_is_optional(driver, node) for driver in drivers)
        demoted = optional and found.level is Severity.PROBLEM
        yield found.model_copy(update={"level": Severity.WARNING}) if demoted else found
    if node.container.engine != "none":
        yield _engine(f"{place}.container.engine", node, facts)
    if node.vms is not None and world is World.LAB:
        yield _kvm(place, node, facts)


def _is_optional(driver: Driver, node: DutNode) -> bool:
    return isinstance(driver, FunctionDriver) and driver.on_request and driver.kind != node.containers[0]


def _installed(place: str, what: str, program: ProgramFacts, where: str, fix: str) -> CheckFinding:
    if not program.there:
        return problem(place, what, f"{where} is not there", fix)
    if program.problem:
        return problem(place, what, f"{where} does not run: {program.problem}", fix)
    return ok(place, what, program.version or "of an unknown version")


def _engine(place: str, node: DutNode, facts: Facts) -> CheckFinding:
    """Containers of NFs: the engine that is asked for, or whether there is one. That it works is tried by a run."""
    engines = {"podman": facts.programs.podman, "docker": facts.programs.docker}
    wanted = node.container.engine
    if wanted in engines and not engines[wanted].version:
        each = engines[wanted]
        why = each.problem if each.there and each.problem else "it is not installed" if not each.there else "no answer"
        remedy = f"{_REMEDIES[wanted]}, or say engine: auto"
        return problem(place, "containers", f"{wanted} does not answer: {why}", remedy)
    if wanted != "docker" and engines["podman"].version and not facts.programs.runc.there:
        text = "podman without runc: its other runtime, crun, refuses control groups of versions 1 and 2 side by side"
        return warning(place, "containers", text, "apt-get install runc")
    answering = [f"{name} {each.version}" for name, each in engines.items() if each.version]
    if answering:
        return ok(place, "containers", ", ".join(answering))
    text = "neither Podman nor Docker answers: NFs are in network namespaces without containers"
    return warning(place, "containers", text, f"{_REMEDIES['podman']}, or say engine: none")


def _kvm(place: str, node: DutNode, facts: Facts) -> CheckFinding:
    kvm = facts.programs.kvm
    missing = "" if kvm.usable else kvm.problem or "it is of no use" if kvm.there else "/dev/kvm is not there"
    fix = "switch virtualization on in the firmware, then: modprobe kvm_intel (or kvm_amd)"
    if missing and node.settings(Vm).accelerator == "kvm":
        return problem(f"{place}.vm.accelerator", "KVM", missing, f"{fix}, or say accelerator: auto")
    if missing:
        return warning(place, "KVM", f"{missing}: virtual machines are emulated, 20 times slower", fix)
    if kvm.paravirtual:
        text = "is a paravirtual one, on which an ordinary guest may hang: a run tries, and emulates where it does"
        return warning(place, "KVM", text, "measure virtual machines on bare metal")
    return ok(place, "KVM", "/dev/kvm answers")
