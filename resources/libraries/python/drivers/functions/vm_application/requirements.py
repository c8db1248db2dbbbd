"""Requirements of applications in virtual machines on this machine."""

from collections.abc import Iterator

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.functions.vm.requirements import missing as vm_missing
from resources.libraries.python.drivers.host.ownership.preflight import Problem
from resources.libraries.python.drivers.host.programs.installed import path_of
from resources.libraries.python.model.driver import FunctionDriver, Guest, RequiredProgram
from resources.libraries.python.model.kinds import NfKind
from resources.libraries.python.model.nodes import DutNode


def missing(node: DutNode, kind: NfKind) -> Iterator[Problem]:
    """Yield programs that are missing, each with the kinds of virtual machines that need it.

    Args:
        node: Has the settings of applications.
        kind: Of the virtual machines.
    """
    needed: dict[str, tuple[RequiredProgram, list[str]]] = {}
    for each in driver_registry.functions().values():
        application = each.in_guest.driver if each.in_guest is not None and each.host == kind else None
        if application is not None and application.guest is not None:
            for program in application.guest.programs:
                if path_of(program.name) is None or _is_incomplete(application, application.guest, program, node):
                    needed.setdefault(program.name, (program, []))[1].append(each.name)
    for name, (program, kinds) in needed.items():
        problem = f"{name} missing for virtual machines of kind {', '.join(kinds)}"
        yield Problem(problem, f"install it: {program.remedy}")


def _is_incomplete(application: FunctionDriver, guest: Guest, program: RequiredProgram, node: DutNode) -> bool:
    own = program.name in {each.name for each in application.programs}
    return own and guest.missing is not None and any(driver_registry.load(guest.missing)(node, application.kind))


def missing_on(node: DutNode, kind: NfKind) -> Iterator[Problem]:
    """Yield what this machine lacks for Linux guests of a node."""
    yield from vm_missing()
    yield from missing(node, kind)
