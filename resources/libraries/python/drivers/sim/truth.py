"""Known capacity of a simulated cell, and its limit: the truth that measurements are compared with.

Contention of simulated network functions for the caches and the memory of one server leaves NF i beside j, k, ... this
share of its capacity:

    left(i | j, k, ...) = 1 - s_i D / (D + h_i),   D = p_j + p_k + ...

The pressure p of each neighbour adds up to what displaces the working set of a target. Its loss saturates: it goes
towards the sensitivity s, all that it can lose, of which half is lost at a pressure of h. So several neighbours nearly
always leave more than the product of what each of them leaves. Placements are predicted by another model, see
`studies.interference.analysis.placement`.

Constants of a kind are in the declaration of its driver (`SimulatedNf`). Those of types I to V are fitted by least
squares, and rounded, to the figures of Zeng et al.: row means (Table III) 87.64, 49.69, 64.07, 64.78 and 61.14 %, I
beside III 85.41 %, II beside III 61.53 %, III beside II 64.49 %, and IV and V as the most aggressive ones. All eight
are met within 1.2 points. Eight figures do not determine fifteen constants: pressures are bounded (I 0.03 to 0.08, II
and III up to 0.5), and single pairs that the paper does not print are not claimed. The other kinds are assumed, in the
order of their types.

With guaranteed network I/O a part of each loss is given back, `network_part` of the simulation, for any co-located NFs:
where all are limited, and their limits together are no more than the line carries. Beyond that nothing is guaranteed.
With guaranteed CPU time, `cpu_part` of each loss is given back where all are limited. It is assumed to be most for type
III, whose loss beside types IV and V the paper puts down to CPU time.

The capacity of a cell is calibrated on published figures:

    capacity = min(vSwitch, over the nodes of a service: number of NFs there x NF)
    vSwitch  = cores^0.9 / (crossing(N) x crowding(S) x copying(frame))

with S service instances of N NFs. `crossing` is the vSwitch's time per packet in microseconds: the two crossings at
the edges, next to the physical ports, and in a snake N-1 inner ones, from NF to NF. A pipeline has no inner ones, so
it is flat in N. `crowding` grows with S, as more instances leave smaller vectors for each. A single VM is a case of its
own: published figures are 10 % below those of two. Microseconds, crowding and the half-core NF are calibrated: fitted
by least squares of relative errors to CSIT-1904's 64B NDR with one vSwitch core (slides "NF service density", IETF 105
BMWG; 126 cells). Mean absolute relative error 2.4 %, 11.6 % at worst (VSC 1R10C).

Assumed, not fitted: the exponent 0.9 of the cores (a bit less than linear), NFs scaling alike, what NFs of the kernel
and programs beside it forward or look at, what a copy for a passive NF costs the vSwitch, that a path without NFs costs
it half as much as its two edges, and the cost of copying larger frames at each crossing. With 10GE ports larger frames
are bounded by line rate long before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from resources.libraries.python.drivers.sim.impairment import Impairment, impaired, memory_left_ratio
from resources.libraries.python.drivers.sim.simulation import Simulation
from resources.libraries.python.model.driver import SimulatedNf
from resources.libraries.python.model.plan import NfPlan, Plan
from resources.libraries.python.model.request.cell import Cell, Frame, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.planning.names import GENERATOR, VSWITCH, vswitch_name

Part = tuple[int, ...]
"""Service instances that have one capacity together."""


_WAYS = 2
_ROUNDING = 1e-9


def left_by(neighbours: Sequence[NfPlan], function: NfPlan, simulation: Simulation, line_pps: float) -> float:
    """The share of what a network function can do alone that its neighbours leave to it.

    `neighbours`: All others on the server.
    `simulation`: Has constants of its own for some kinds.
    `line_pps`: What the line carries for all of them, one way.
    """
    own = _of(function.kind, simulation)
    pressure = sum(_of(each.kind, simulation).pressure for each in neighbours)
    lost = own.sensitivity * pressure / (pressure + own.half_pressure)
    colocated = (function, *neighbours)
    given_back = simulation.network_part if is_guaranteed(colocated, line_pps) else 0.0
    if all(each.limits.cpu is not None for each in colocated):
        given_back += simulation.cpu_part.get(function.kind, function.kind.driver.simulated.cpu_part)
    return 1 - lost * (1 - min(1.0, given_back))


def is_guaranteed(colocated: Sequence[NfPlan], line_pps: float) -> bool:
    """Whether each has its share of the line: all are limited, to no more than the line carries for all of them."""
    limits = [each.limits.network_pps for each in colocated]
    known = [limit_pps for limit_pps in limits if limit_pps is not None]
    return len(known) == len(limits) and sum(known) <= line_pps * (1 + _ROUNDING)


def _of(kind: NfKind, simulation: Simulation) -> SimulatedNf:
    known = kind.driver.simulated
    return replace(
        known,
        sensitivity=simulation.sensitivity.get(kind, known.sensitivity),
        half_pressure=simulation.half_pressure.get(kind, known.half_pressure),
        pressure=simulation.pressure.get(kind, known.pressure),
    )


_CORES_EXPONENT = 0.9
_COPY_US = 0.046
"""A copy for a passive NF: half of an inner crossing, as it is sent and not received."""
_COPY_BYTES = 4000.0
"""Bytes beyond 64 that cost as much as the rest of a crossing."""


ScalesTo = Mapping[NfKind, float]
"""Data cores beyond which an NF of a kind gets no faster."""
_WITHOUT_END: ScalesTo = {}


def capacity_pps(cell: Cell, frame: Frame, scales_to: ScalesTo = _WITHOUT_END) -> float:
    """Packets per second that a cell forwards, aggregate of all instances and both directions."""
    nodes = range(1, cell.nf_nodes + 1)
    return min([vswitch_pps(cell, frame), *(nfs_pps(cell, node, scales_to) for node in nodes)])


def vswitch_pps(cell: Cell, frame: Frame) -> float:
    """Capacity of the vSwitch, aggregate of all instances and both directions."""
    crossing_us = _crossing_us(cell) * _crowding(cell) * (1 + max(0.0, frame.mean_bytes - 64) / _COPY_BYTES)
    return float(float(cell.vs_dtc) ** _CORES_EXPONENT / crossing_us * 1e6)


def nfs_pps(cell: Cell, node: int, scales_to: ScalesTo = _WITHOUT_END) -> float:
    """Total capacity of the NFs at place `node` (1-based) of all instances; one NF where they share it."""
    kind, cores = cell.kind_of(node) or NfKind("sim"), used_cores(cell, node, scales_to)
    return float(cell.count_of(node) * kind.driver.simulated.half_core_pps * (cores / 0.5) ** _CORES_EXPONENT)


def one_pps(kind: NfKind, cores: float) -> float:
    """Capacity of one NF of a kind, forwarding or inspecting, with so many data cores, both directions together."""
    return float(kind.driver.simulated.half_core_pps * (cores / 0.5) ** _CORES_EXPONENT)


def used_cores(cell: Cell, node: int, scales_to: ScalesTo, instance: int = 1) -> float:
    """Data cores of an NF that have work; the others idle whatever the load."""
    cores = cell.size_of(node, instance).cores
    return min(cores, scales_to.get(cell.kind_of(node, instance) or NfKind("sim"), cores))


def _crossing_us(cell: Cell) -> float:
    edges_us, inner_us = (0.198, 0.105) if cell.service_type is ServiceType.VSC else (0.155, 0.092)
    copies_us = _COPY_US * len(cell.taps)
    if cell.service_type.is_pipeline:
        return edges_us + copies_us
    if not cell.nf_nodes:
        return edges_us / 2 + copies_us
    return edges_us + inner_us * (cell.nf_nodes - 1) + copies_us


def _crowding(cell: Cell) -> float:
    """Time per packet relative to the least crowded cell of the kind."""
    more = len(cell.instances) - 2
    if cell.service_type is ServiceType.VSC:
        return 1.10 if more < 0 else 1 + 0.048 * more
    return 1.0 if more < 0 else 1.164 + 0.0236 * more


class SimulatedTruth:
    """Capacities of a plan's owners.

    Where instances are different services, each has a capacity of its own, and an equal share of the vSwitch. Else all
    have one together, and lose alike.
    """

    def __init__(self, plan: Plan, simulation: Simulation) -> None:
        self._nfs = plan.nfs
        self._taps = plan.taps
        # What the cell leaves to the testbed, the plan has decided.
        kinds = tuple(function.kind for function in plan.functions if function.instance == 1)
        self._by_instance = by_instance = bool(plan.cell.instance_kinds)
        self._cell = plan.cell if by_instance else plan.cell.model_copy(update={"nf_kinds": kinds})
        self._simulation = simulation
        vswitches = (vswitch_name(number + 1) for number in range(len(plan.cores.elsewhere) + 1))
        owners = {*vswitches, *(nf.name for nf in plan.nfs), *(tap.name for tap in plan.taps)}
        self._limited_by = simulation.limited_by if simulation.limited_by in owners else None
        # A core does the work of one fast thread in the place of that of two slower ones.
        core_speed = 1 / (2 * simulation.sibling_speed) if plan.smt_off else 1.0
        self._scale = self._scale_new = simulation.capacity_scale * core_speed
        self._flows = plan.flows
        memory_left = memory_left_ratio(plan)
        times = cpu_time_left(plan, impaired(plan, simulation.impaired))
        self._quota = {name: time * memory_left[name] for name, time in times.items()}
        instances = tuple(plan.cell.instances)
        self.parts: tuple[Part, ...] = tuple((each,) for each in instances) if by_instance else (instances,)
        """Of the cell."""
        self._known: dict[tuple[Frame, Part], dict[int | None, float]] = {}
        """What `_rates` has returned: a trial asks several times, and all trials ask the same."""

    def age(self, seconds: float) -> None:
        """Let the system be so old, which costs capacity where it decays."""
        self._scale = self._scale_new * (1 - self._simulation.decay.per_minute) ** (seconds / 60)

    def capacity_pps(self, frame: Frame, part: Part | None = None) -> float:
        """Packets per second that a part can forward, both directions together.

        By default what the cell can without that any of its parts loses: all its flows have the same rate.
        """
        parts = (part,) if part else self.parts
        least_pps = min(min(self._rates(frame, each).values()) for each in parts)
        return self._scale * least_pps * (1 if part else len(parts))

    def limit_owners(self, frame: Frame, part: Part | None = None) -> frozenset[str]:
        """Whose loss it is when more is offered than a part can forward; by default of all of them."""
        if self._limited_by is not None:
            return frozenset({self._limited_by})
        found: set[str] = set()
        for each in (part,) if part else self.parts:
            rates = self._rates(frame, each)
            slowest = min(rates, key=lambda node: rates[node])  # of equals the first: the vSwitch, then the first NFs
            found |= {VSWITCH} if slowest is None else {nf.name for nf in self._at(slowest, each)}
        return frozenset(found)

    def _at(self, node: int, part: Part) -> list[NfPlan]:
        return [nf for nf in self._nfs if nf.node == node and (len(self.parts) == 1 or nf.instance in part)]

    def _rates(self, frame: Frame, part: Part) -> Mapping[int | None, float]:
        """Capacity of the NFs at each node for a part, and as None that of the vSwitch, not scaled."""
        key = frame, part
        if key not in self._known:
            self._known[key] = self._computed_rates(frame, part)
        return self._known[key]

    def _computed_rates(self, frame: Frame, part: Part) -> dict[int | None, float]:
        rates: dict[int | None, float] = {None: self._vswitch_pps(frame) / len(self.parts)}
        for node in range(1, self._cell.nf_nodes + 1):
            first = self._at(node, part)[0]
            if self._by_instance:
                rates[node] = self._beside_others(first, frame)
            else:
                rates[node] = nfs_pps(self._cell, node, self._simulation.scales_to) * self._quota[first.name]
        return rates

    def _vswitch_pps(self, frame: Frame) -> float:
        """Capacity of the vSwitch, not scaled."""
        cache = self._simulation.flow_cache
        slowdown = cache.slowdown(sum(frame.flows or flow.sources for flow in self._flows)) if cache else 1.0
        return vswitch_pps(self._cell, frame) / slowdown

    def _beside_others(self, function: NfPlan, frame: Frame) -> float:
        """Capacity of an NF of an instance of its own beside those of the other instances."""
        alone_pps = one_pps(function.kind, self._used(function)) * self._quota[function.name]
        others = [each for each in self._nfs if each.instance != function.instance]
        left_pps = alone_pps * left_by(others, function, self._simulation, self._simulation.line_pps(frame))
        most_pps = function.limits.network_pps  # one way
        return left_pps if most_pps is None else min(left_pps, _WAYS * most_pps)

    def _used(self, function: NfPlan) -> float:
        return used_cores(self._cell, function.node, self._simulation.scales_to, function.instance)

    def rates(self, frame: Frame, generator_pps: float) -> dict[str, float]:
        """Capacity of each owner, as the load of the whole cell; endless for one that drops without being busy.

        `generator_pps`: what the generator can.
        """
        simulation = self._simulation
        scale, count = self._scale, len(self.parts)
        rates = {GENERATOR: generator_pps, VSWITCH: scale * self._vswitch_pps(frame)}
        for part in self.parts:
            here = self._rates(frame, part)
            rates |= {nf.name: scale * count * here[node] for node in here if node for nf in self._at(node, part)}
        rates |= {name: len(self._cell.instances) * tap_pps for name, tap_pps in self.taps_pps().items()}
        if self._limited_by is not None:
            rates = {owner: 2 * rate_pps for owner, rate_pps in rates.items()}
        if count > 1 and self._limited_by is None and not simulation.drops_inside:
            return rates
        limit_pps = inf if simulation.drops_inside else self.capacity_pps(frame)
        return rates | dict.fromkeys(self.limit_owners(frame), limit_pps)

    def taps_pps(self) -> dict[str, float]:
        """Copies per second that each passive NF can look at."""
        scale = self._scale
        most: Mapping[NfKind, float] = self._simulation.scales_to
        return {
            tap.name: scale
            * one_pps(tap.kind, min(tap.size.cores, most.get(tap.kind, tap.size.cores)))
            * self._quota[tap.name]
            for tap in self._taps
        }

    def idle(self) -> dict[str, float]:
        """The share of an NF's data threads that never have work; NFs that scale to all of them are left out."""
        shares = {function.name: 1 - self._used(function) / function.size.cores for function in self._nfs}
        return {name: share for name, share in shares.items() if share > 0}


def cpu_time_left(plan: Plan, faults: Mapping[str, Impairment]) -> dict[str, float]:
    """The share of the time of its CPUs that each NF may use, by name; 1.0 for all of it."""
    return {
        each.name: (1.0 if each.limits.cpu is None else min(1.0, each.limits.cpu / len(plan.cores.cpus(each.name))))
        * (1 - (faults[each.name].stolen_ratio if each.name in faults else 0.0))
        for each in plan.all_nfs
    }
