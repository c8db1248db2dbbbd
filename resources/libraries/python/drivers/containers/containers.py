"""Containers of the NFs of a plan: one each, in the NF's network namespace, on the NF's CPUs."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from resources.libraries.python.drivers.containers import CONTAINERS
from resources.libraries.python.drivers.containers import engine as engines
from resources.libraries.python.drivers.containers.container_cleanup import Contained, call, remove, remove_layers
from resources.libraries.python.drivers.containers.engine import ContainerSpec, Engine
from resources.libraries.python.drivers.containers.engine_choice import (
    EngineChoice,
    choose,
    folders_of_the_machine,
    own_limits,
)
from resources.libraries.python.drivers.host.cgroups.cgroup_tree import folders_of, frozen
from resources.libraries.python.drivers.host.links.namespaces import name_of, path_of
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.drivers.host.ownership.processes import is_ending, is_stopped
from resources.libraries.python.drivers.host.programs.daemons import NO_ENTRY, ExecContext
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.core_map import CoreMap, ThreadRole
from resources.libraries.python.model.plan import NfPlan, TapPlan
from resources.libraries.python.model.testbed.cpu import expand
from resources.libraries.python.model.testbed.nodes import Container as Settings

_FOLDER = "containers"
_AT_ONCE = 4
"""Engines lock most of what they do: more at once would only wait."""
_FAVOURED = {"cpu.shares": "88761", "cpu.weight.nice": "-20"}
"""CPU weight of a thread at nice -20, in the files of control groups version 1 and 2."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _RunningContainer:
    """A container that runs."""

    pid: int
    """PID of its first process, which sleeps."""
    groups: Mapping[str, Path]
    """Folders of its control groups by controllers."""


class NfContainers:
    """Containers of all NFs of a plan on this machine; virtual machines need none.

    `machine`: the machine's lock, held.
    """

    def __init__(
        self, settings: Settings, functions: Sequence[NfPlan | TapPlan], cores: CoreMap, machine: MachineLock
    ) -> None:
        self._settings = settings
        self._names = [each.name for each in functions if not each.kind.is_vm and not each.kind.driver.is_simulated]
        self._cores = cores
        self._machine = machine
        self._choice: EngineChoice | None = None
        self._claimed: dict[str, Contained] = {}
        self._running: dict[str, _RunningContainer] = {}
        self._favoured = False
        self._folder: Path | None = None

    def start(self) -> None:
        """Start them, and see that each runs on the CPUs that it should; network namespaces are there already.

        Raises:
            CsitError: The engine does not start one, or gives one other CPUs.
        """
        self._choice = choose(self._settings)
        engine = self._choice.engine
        _log.info("containers of NFs: %s", self._choice)
        if engine is None or not self._names:
            return
        remove_layers(engine)
        self._folder = self._machine.folder(_FOLDER)
        for name in self._names:
            contained = Contained(engine=engine, name=name_of(name))
            self._machine.claim(CONTAINERS, contained)
            self._claimed[name] = contained
        command = partial(
            engines.run,
            engine,
            shared=(self._folder.parent, *_huge_pages()),
            read_only=folders_of_the_machine(engine),
            limits=own_limits(),
        )
        commands = {name: command(self._wanted(name)) for name in self._names}
        first, *others = self._names
        _start(engine, first, commands[first])  # alone: it makes what the engine keeps for all
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in [pool.submit(_start, engine, name, commands[name]) for name in others]:
                done.result()
        self._read_back(engine)

    def _wanted(self, name: str) -> ContainerSpec:
        return ContainerSpec(name=name_of(name), namespace=path_of(name_of(name)), cpus=tuple(sorted(self._cpus(name))))

    def _cpus(self, name: str) -> frozenset[int]:
        return frozenset((*self._cores.cpus(name), *self._cores.cpus(name, ThreadRole.MAIN)))

    def _read_back(self, engine: Engine) -> None:
        owners = {name_of(name): name for name in self._names}
        for row in call(engine, engines.inspect(engine, owners)).splitlines():
            shown, pid, running, *cpus = row.split()
            name = owners[shown.removeprefix("/")]
            if running != "true":
                raise CsitError(f"the container of {name} has ended")
            groups = folders_of(int(pid))
            self._machine.claim_made_groups(groups.values())
            self._running[name] = _RunningContainer(int(pid), groups)
            for what, found in (
                (f"{engine.name} says", frozenset(expand(cpus[0])) if cpus else None),
                ("its control group has", _cpuset(groups)),
                ("its first process has", frozenset(os.sched_getaffinity(int(pid)))),
            ):
                if found != self._cpus(name):
                    actual = "nothing" if found is None else sorted(found)
                    raise CsitError(f"the container of {name} is for CPUs {sorted(self._cpus(name))}, {what} {actual}")
        if lost := [name for name in self._names if name not in self._running]:
            raise CsitError(f"{engine.name} does not show the containers of {', '.join(lost)}")

    def has(self, name: str) -> bool:
        """Whether an NF runs in a container."""
        return name in self._running

    def entry(self, name: str) -> ExecContext:
        """Control groups and namespaces of an NF's program."""
        running = self._running.get(name)
        if running is None:
            return NO_ENTRY
        return ExecContext(tuple(folder / "cgroup.procs" for folder in running.groups.values()), running.pid)

    def folders(self, name: str) -> tuple[Path, ...]:
        """Return the folders of the control groups of an NF's container."""
        return tuple(self._running[name].groups.values())

    def allows_real_time(self, name: str) -> bool:
        """Whether programs of an NF may run in real time: not where its group has no share of that (version 1)."""
        running = self._running.get(name)
        folders = running.groups.values() if running else ()
        return not any(_is_zero(folder / "cpu.rt_runtime_us") for folder in folders)

    def favour(self) -> None:
        """Raise the CPU weight of each container to that of a thread at nice -20; later calls do nothing.

        It matters on shared cores only, where polling threads run at nice -20 (`polling.favour`). Those of the vSwitch
        have to be raised first: otherwise a polling NF starves the worker of a VPP vSwitch, and VPP aborts if its
        worker does not reach a barrier within one second.
        """
        if self._favoured:
            return
        self._favoured = True
        for running in self._running.values():
            for folder in running.groups.values():
                for name, weight in _FAVOURED.items():
                    if (folder / name).exists():
                        (folder / name).write_text(weight, encoding="ascii")

    def facts(self) -> dict[str, str]:
        """Engine, version, runtime, and what the containers are made of."""
        if self._choice is None or not self._names:
            return {}
        real_time = all(map(self.allows_real_time, self._running))
        return {"containers": f"{self._choice}{'' if real_time else '; no real time inside'}"}

    def problems(self) -> tuple[str, ...]:
        """Those that are paused, and those whose first process has ended or is stopped."""
        rows = ((name, _problem(each)) for name, each in self._running.items())
        return tuple(f"the container of {name} {problem}" for name, problem in rows if problem)

    def stop(self) -> None:
        """End and remove all of them. Safe to call at any time and more than once.

        Raises:
            CsitError: The engine does not remove one.
        """
        claimed, self._claimed = self._claimed, {}
        running, self._running = self._running, {}
        if not claimed:
            return
        remove_all(claimed.values())
        self._machine.release(CONTAINERS, claimed.values())
        self._machine.release("groups", (folder for each in running.values() for folder in each.groups.values()))
        if self._folder is not None:
            with suppress(OSError):
                self._folder.rmdir()


def _start(engine: Engine, name: str, argv: Sequence[str]) -> None:
    try:
        call(engine, argv)
    except CommandFailed as error:
        raise CsitError(
            f"{engine.name} does not start the container of {name}: {' '.join(error.stderr.split())}"
        ) from error


def remove_all(containers: Iterable[Contained]) -> None:
    """Remove containers of one engine that this run has made, with one command."""
    rows = list(containers)
    try:
        call(rows[0].engine, engines.remove(rows[0].engine, [each.name for each in rows]))
    except CsitError:  # one was never made, or was removed by hand
        remove(rows)
    else:
        remove_layers(rows[0].engine)


def _problem(running: _RunningContainer) -> str:
    if not Path(f"/proc/{running.pid}/ns/net").exists() or is_ending(running.pid):
        return "has ended"
    if frozen(running.groups.values()):
        return "is paused (frozen control group)"
    return "is stopped (SIGSTOP)" if is_stopped(running.pid) else ""


def _cpuset(groups: Mapping[str, Path]) -> frozenset[int] | None:
    """CPUs that a group may use; None where there is no controller for it."""
    for controllers, folder in groups.items():
        if controllers in ("", "cpuset") or "cpuset" in controllers.split(","):
            # Version 2 leaves the first file empty where a group above it has the CPUs.
            for file in ("cpuset.cpus.effective", "cpuset.cpus"):
                with suppress(OSError, ValueError):
                    return frozenset(expand((folder / file).read_text(encoding="ascii").strip()))
    return None


def _is_zero(file: Path) -> bool:
    with suppress(OSError):
        return file.read_text(encoding="ascii").strip() == "0"
    return False


def _huge_pages() -> list[Path]:
    rows = (row.split() for row in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines())
    return [Path(place) for _, place, kind, *_ in rows if kind == "hugetlbfs"]
