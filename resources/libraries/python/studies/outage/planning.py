"""Cost of a study of outages, the order of its trials, and events that drivers do not support."""

from collections.abc import Collection
from dataclasses import dataclass
from random import Random

from resources.libraries.python.driver_registry import vswitches
from resources.libraries.python.model.core_map import ThreadRole
from resources.libraries.python.model.driver import FunctionDriver, VSwitchDriver
from resources.libraries.python.model.measurements.disturbance import PartEvent
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.planning.cost import StudyCost
from resources.libraries.python.planning.names import GENERATOR, nf_name
from resources.libraries.python.studies.outage.model import CONTROL, VSWITCH, OutageSpec, TargetedEvent

AROUND_S = 1.0
"""Assumed around the traffic of a trial: deploying, preparing, removing."""
SEARCH_S = 15.0
"""Assumed for the search of NDR, its deployment included."""
_STARTS = (PartEvent.RESTART, PartEvent.ADD)


@dataclass(frozen=True, slots=True)
class OutageTurn:
    """One trial to be made."""

    number: int
    """Its place in the order, from 0."""
    repetition: int
    strike: TargetedEvent | None
    """None for a trial without an event."""

    @property
    def event(self) -> str:
        """Name of the event."""
        return CONTROL if self.strike is None else self.strike.name


def parts_hit(spec: OutageSpec, strike: TargetedEvent) -> tuple[str, ...]:
    """Names of the parts of the plan that an event happens to."""
    if strike.instance is None or strike.node is not None:
        return (strike.target,)
    return tuple(nf_name(strike.instance, node) for node in range(1, len(spec.nf_kinds) + 1))


def refusals(spec: OutageSpec, dut: DutNode | None, plan: Plan | None = None) -> dict[str, str]:
    """Events that a driver does not support, or that the plan leaves no CPU for, a sentence each.

    `dut`: the node under test; None if not known.
    `plan`: of the service on that node; None if not known.
    """
    found = {} if dut is None or plan is None else starved(spec, dut.vswitch, plan) | immovable(spec, plan)
    for strike in spec.events:
        if strike.target == VSWITCH:
            drivers: list[VSwitchDriver | FunctionDriver] = [vswitches()[dut.vswitch]] if dut is not None else []
        else:
            kinds = spec.nf_kinds if strike.node is None else (spec.nf_kinds[strike.node - 1],)
            drivers = [kind.driver for kind in kinds]
        for driver in drivers:
            reason = None
            if strike.event not in driver.events:
                names = ", ".join(event for event in PartEvent if event in driver.events)
                reason = f"{driver.name} supports {names or 'no event'}"
            elif strike.event is PartEvent.RELOAD and dut is not None:
                reason = driver.reload_problem(dut)
            if reason is not None:
                found[strike.name] = f"{strike.event} is not possible for {strike.target}: {reason}"
    return found


def starved(spec: OutageSpec, vswitch: str, plan: Plan) -> dict[str, str]:
    """Starts that could not end before the load does, a sentence each: the generator takes the CPU that they need."""
    found: dict[str, str] = {}
    sending = [thread for thread in plan.cores.threads if thread.owner == GENERATOR and thread.role is ThreadRole.DATA]
    generator = {(thread.machine, thread.cpu) for thread in sending} if plan.cores.oversubscribed else set()
    kinds = {function.name: function.kind.driver.starts_on_main_cpu for function in plan.nfs}
    pinned = {VSWITCH: vswitches()[vswitch].starts_on_main_cpu} | kinds
    for strike in spec.events:
        for part in parts_hit(spec, strike) if strike.event in _STARTS else ():
            mains = {
                (thread.machine, thread.cpu)
                for thread in plan.cores.threads
                if pinned.get(part) and thread.owner == part and thread.role is ThreadRole.MAIN
            }
            for _, cpu in generator & mains:
                found[strike.name] = (
                    f"{strike.event} is not possible for {strike.target}: CPU {cpu} of the main thread of {part} is "
                    "the generator's, which sends from it all the time"
                )
    return found


def immovable(spec: OutageSpec, plan: Plan) -> dict[str, str]:
    """Moves of parts on whose machine the plan has no CPU but those of their data threads, a sentence each."""
    found: dict[str, str] = {}
    for strike in spec.events:
        for part in parts_hit(spec, strike) if strike.event is PartEvent.MOVE else ():
            own = sorted(set(plan.cores.cpus(part)))
            if own and not plan.cores.beside(part).difference(own):
                cpus = f"CPU{'s' * (len(own) > 1)} {', '.join(map(str, own))}"
                found[strike.name] = (
                    f"{strike.event} is not possible for {strike.target}: the data threads of {part} are on {cpus}, "
                    "and the plan has no other CPU on that machine"
                )
    return found


def cost(spec: OutageSpec, refused: Collection[str] = ()) -> StudyCost:
    """Count trials, each with a deployment of its own, and seconds.

    `refused`: names of events that are not measured.

    Raises:
        ConfigError: More trials, or more time, than `model.bounds` allows.
    """
    trials = spec.repetitions * sum(name not in refused for name in spec.columns)
    search_s = SEARCH_S if spec.rate_pps is None else 0.0
    seconds = search_s + trials * (spec.duration_s + AROUND_S)
    return StudyCost(spec.name, trials, trials, "trials", seconds, {"trials": trials, "deployments": trials})


def schedule(spec: OutageSpec, refused: Collection[str] = ()) -> tuple[OutageTurn, ...]:
    """Order all trials. Each repetition has every event once, in an order of its own that depends on the seed only.

    `refused`: names of events that are not measured.
    """
    events = [strike for strike in spec.events if strike.name not in refused]
    turns: list[OutageTurn] = []
    for repetition in range(spec.repetitions):
        row: list[TargetedEvent | None] = [*([None] if spec.control else []), *events]
        Random(f"{spec.seed}/{repetition}").shuffle(row)  # noqa: S311 (reproducible, not secret)
        turns += [OutageTurn(number, repetition, strike) for number, strike in enumerate(row, len(turns))]
    return tuple(turns)
