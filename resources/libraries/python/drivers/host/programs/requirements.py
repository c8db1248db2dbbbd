"""What this machine lacks for a driver: by its package's own function, or the programs that it declares."""

import resource
from collections.abc import Iterator

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.model.driver import Driver, FunctionDriver, GeneratorDriver
from resources.libraries.python.model.findings import PreflightProblem
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode


def missing(driver: Driver, node: TgNode | DutNode) -> Iterator[PreflightProblem]:
    """Yield what is missing; the limit of open files is raised, where that is allowed and a driver needs it."""
    role = "generator" if isinstance(driver, GeneratorDriver) else "vSwitch"
    needed_for = f"NFs of kind {driver.name}" if isinstance(driver, FunctionDriver) else f"the {role} {driver.name}"
    if driver.missing is not None:
        of_kind = (NfKind(driver.name),) if isinstance(driver, FunctionDriver) else ()
        yield from driver_registry.load(driver.missing)(node, *of_kind)
    else:
        for program in driver.programs:
            if path_of(program.on(node)) is None:
                yield PreflightProblem(f"{program.name} missing for {needed_for}", f"install it: {program.remedy}")
    if (most := _open_files(needed := driver.open_files(node))) < needed:
        what = f"{needed_for} may open {needed:,} files, and the limit is {most:,}"
        yield PreflightProblem(what, "raise it: ulimit -Hn; in a container: --ulimit nofile")


def _open_files(needed: int) -> int:
    """Maximum number of open files of programs that this process starts, raised to what they need where it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, hard)))
        except (OSError, ValueError):  # above the hard limit, and without the right to raise that
            return hard
    return max(soft, needed)
