"""Cores of a testbed of several machines: each planned on its own processor, with the same rules.

A DUT is planned as if it were alone. The generator's own machine has one system core, and one physical core for each
of the generator's data threads; where cores are left, its control thread has one of them, else the system core, and
the receiving thread of a generator that polls its ports another one.
"""

from collections.abc import Mapping

from resources.libraries.python.errors import ConfigError, PlanError
from resources.libraries.python.model.core_map import CoreMap, MachineCores, Thread, ThreadRole
from resources.libraries.python.model.request.cell import Cell
from resources.libraries.python.model.testbed.attachment import polled_queues
from resources.libraries.python.model.testbed.cpu import CpuLayout
from resources.libraries.python.model.testbed.nodes import TgNode
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.placement.cores import allocate, impossible, lack
from resources.libraries.python.planning.reasons import Limit, Reason
from resources.libraries.python.redaction import command_text

Layouts = CpuLayout | Mapping[str, CpuLayout]
"""Logical CPUs of the (first) DUT, or of nodes by name."""
_SYSTEM_CORES = 1


def layouts_of(topology: Topology, given: Layouts) -> dict[str, CpuLayout]:
    """Logical CPUs of every machine that is planned, by name of the node, the first DUT first.

    What is not given is taken from the topology.

    Raises:
        ConfigError: They are neither given nor listed there.
    """
    known = {next(iter(topology.duts)): given} if isinstance(given, CpuLayout) else dict(given)
    nodes = [*topology.duts, *([topology.tg_name] if _has_tg(topology) else [])]
    unknown = [name for name in nodes if name not in known and topology.nodes[name].cpus == "discover"]
    if unknown:
        keys = " and ".join(f"nodes.{name}.cpus" for name in unknown)
        files = " ".join(command_text("--cpus", f"{name}=FILE") for name in unknown)
        raise ConfigError(
            f"testbed {topology.metadata.name}: {keys} unknown: `discover`, and no node was reached; list the CPUs "
            f"there, or give `./csit plan` a file for each with what `lscpu -p` prints on it: ",
            files,
        )
    return {name: known.get(name) or topology.nodes[name].layout for name in nodes}


def _has_tg(topology: Topology) -> bool:
    """Whether the generator has a machine of its own whose processors are planned."""
    return topology.world is World.LAB and topology.tg_name in topology.machines


def generator_cores(topology: Topology) -> int:
    """Cores of the DUT's machine that the generator takes; 0 when it has a machine of its own."""
    return topology.tg.generator.cores if topology.tg.shares_machine_with else 0


def place(topology: Topology, cell: Cell, layouts: Mapping[str, CpuLayout]) -> CoreMap:
    """Place every thread of a cell on every machine.

    Raises:
        PlanError: It does not fit on a machine and may not be folded there.
    """
    maps = []
    for number, (name, dut) in enumerate(topology.duts.items(), 1):
        try:
            maps.append(
                allocate(
                    cell,
                    layouts[name],
                    dut.numa_node,
                    dut.core_sharing,
                    generator_cores=generator_cores(topology),
                    oversubscribe=dut.oversubscribe,
                    dut=number,
                )
            )
        except PlanError as error:
            if number == 1:
                raise  # an error that is its own cause would be an endless chain
            raise PlanError(f"{name}: {error}") from error
    first, others = maps[0], dict(zip(list(topology.duts)[1:], maps[1:], strict=True))
    if _has_tg(topology):
        others[topology.tg_name] = _generators_own(topology, layouts[topology.tg_name])
    if not others:
        return first
    moved = [thread.model_copy(update={"machine": name}) for name, cores in others.items() for thread in cores.threads]
    return first.model_copy(
        update={
            "threads": (*first.threads, *moved),
            "elsewhere": tuple(_machine(name, cores) for name, cores in others.items()),
            "oversubscribed": any(cores.oversubscribed for cores in (first, *others.values())),
        }
    )


def _machine(name: str, cores: CoreMap) -> MachineCores:
    keys = ("numa_node", "smt", "physical", "cores_needed", "cores_there", "oversubscribed", "shared_cpus")
    return MachineCores(machine=name, **{key: getattr(cores, key) for key in keys})


def _generators_own(topology: Topology, layout: CpuLayout) -> CoreMap:
    tg = topology.tg
    cores, needed = layout.cores(tg.numa_node), _SYSTEM_CORES + tg.generator.cores
    fits = needed <= len(cores)
    if not cores or (not fits and not topology.dut.oversubscribe):
        raise PlanError(f"{topology.tg_name}: the generator {_lack(tg, layout)}")
    suited = sorted(cores[1:], key=lambda core: layout.kinds.get(core[0], 0))
    data = suited[: needed - 1] if fits else [cores[-1 - index % len(cores)] for index in range(tg.generator.cores)]
    mains = suited[needed - 1 : needed - 1 + _mains(tg)] or cores[:1]
    threads = (
        Thread(owner="system", role=ThreadRole.SYSTEM, index=0, cpu=cores[0][0]),
        *(Thread(owner=GENERATOR, role=ThreadRole.MAIN, index=index, cpu=core[0]) for index, core in enumerate(mains)),
        *(Thread(owner=GENERATOR, role=ThreadRole.DATA, index=index, cpu=core[0]) for index, core in enumerate(data)),
    )
    used = {thread.cpu for thread in threads}
    return CoreMap(
        numa_node=tg.numa_node,
        smt=layout.smt,
        physical=tuple(core for core in cores if used.intersection(core)),
        threads=threads,
        cores_needed=needed,
        cores_there=len(cores),
        oversubscribed=not fits,
    )


def _mains(tg: TgNode) -> int:
    """Threads of the generator that do not send: one that polls its ports has one more, which receives."""
    return 1 + any(polled_queues(tg, interface) is not None for interface in tg.interfaces.values())


def _lack(tg: TgNode, layout: CpuLayout) -> str:
    needs, there = _SYSTEM_CORES + tg.generator.cores, len(layout.cores(tg.numa_node))
    return f"needs {needs} cores on NUMA {tg.numa_node}, {there} available"


def shortages(topology: Topology, cell: Cell, layouts: Mapping[str, CpuLayout]) -> list[Reason]:
    """Return which machines lack cores or SMT for a cell; nothing where every thread has its own place."""
    found = []
    for number, (name, dut) in enumerate(topology.duts.items(), 1):
        at = "" if number == 1 else f"{name} "
        layout = layouts[name]
        if half := impossible(cell, layout, dut.numa_node):
            found.append(Reason(limit=Limit.SMT, text=f"{at}{half}" if number == 1 else f"{name}: {half}"))
        if missing := lack(cell, layout, dut.numa_node, dut.core_sharing, generator_cores(topology)):
            needs, there = missing.needs, missing.there
            found.append(Reason(limit=Limit.CORES, text=f"{at}{missing.text}", needs=needs, there=there))
    if _has_tg(topology):
        tg, layout = topology.tg, layouts[topology.tg_name]
        needs, there = _SYSTEM_CORES + tg.generator.cores, len(layout.cores(tg.numa_node))
        if needs > there:
            text = f"{topology.tg_name} {_lack(tg, layout)}"
            found.append(Reason(limit=Limit.CORES, text=text, needs=needs, there=there))
    return found


def shareable(topology: Topology, layouts: Mapping[str, CpuLayout]) -> bool:
    """Whether threads may share cores if there are too few."""
    all_nodes = [(layouts[name], node) for name, node in topology.nodes.items() if name in layouts]
    allowed = all(dut.oversubscribe for dut in topology.duts.values())
    return allowed and all(layout.cores(node.numa_node) for layout, node in all_nodes)
