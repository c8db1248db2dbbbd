"""Requirements of drivers: programs, features of the kernel, and what their packages check."""

from collections.abc import Iterator, Sequence
from itertools import chain

from pydantic import ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.model.driver import Driver, FunctionDriver, InstalledProgram, RequiredProgram
from resources.libraries.python.model.findings.check_finding import CheckFinding, Severity, ok, problem, warning
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.testbed.node.fact_collection import drivers_of, kernel_features_of
from resources.libraries.python.testbed.node.facts import Facts


def check(topology: Topology, name: str, facts: Facts) -> Iterator[CheckFinding]:
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
