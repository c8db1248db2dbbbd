"""Qualification of the generator of an open testbed: it is looped back, measured, and removed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from resources.libraries.python import driver_registry
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.qualification import Qualification, QualificationKey, QualifiedPoint
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Cell, Frame, ServiceType, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import Environment, MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.loop_back import loop_back_plan, loop_cables, no_cable, no_loop_back, port_kind
from resources.libraries.python.quantities import rate
from resources.libraries.python.recording.qualifications import FOLDER, key_of, store, stored
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.search.qualification import BRIEF, LOGGED, Effort, qualify_point
from resources.libraries.python.testbed.deployment.health import within
from resources.libraries.python.testbed.deployment.parts import Parts, Testbed

BRIEF_FRAMES = ("64B", "1518B")
WAY_FRAME = "64B"
WAY_GAIN = 0.05
"""Another way of sending has to be faster by more than a brief qualification resolves."""
MAX_RATE_ERROR = 0.005
"""Of a way of sending that keeps its rate."""
LOSS_RATIO = 0.005
"""Of PDR: what the higher one of the rates allows."""
_TRIAL_S = 30.0


def qualify(
    topology: Topology,
    world: Testbed,
    key: QualificationKey,
    *,
    frames: Sequence[Frame],
    flow_counts: Sequence[int],
    effort: Effort,
    way: str | None = None,
    report: Callable[[QualifiedPoint | None, int, int], None] = lambda *_: None,
) -> Qualification:
    """Measure a generator for frame sizes and numbers of flows.

    `way`: Driver that sends in place of the testbed's.
    `report`: Called before the first point with None, and with each point, the number of points done, and of all.

    Raises:
        PlanError: The generator cannot be looped back on this testbed.
        Unsupported: It sends none of the frames.
        CsitError: Nothing comes back, or the testbed is lost.
    """
    driver = driver_registry.generators()[topology.tg.generator.driver]
    points: list[QualifiedPoint] = []
    notes: list[str] = []
    sending = ""
    report(None, 0, len(frames) * len(flow_counts))
    cables = loop_cables(topology)
    largest = max(frames, key=lambda frame: frame.largest_bytes)
    for flows in flow_counts:
        plan = loop_back_plan(topology, world.layout, flows, cables)
        notes += plan.warnings
        with looped_back(plan, world, largest, way) as looped:
            facts = dict(looped.generator.facts())
            sending = facts.pop("sending", "") or facts.pop("generator", "")
            notes += [f"{name}: {text}" for name, text in facts.items()]

            def run(trial: Trial, looped: Parts = looped) -> TrialResult:
                with within("a trial of the loop-back", trial.duration_s + _TRIAL_S):
                    return looped.generator.run(trial)

            for size in frames:
                try:
                    point = qualify_point(
                        run,
                        looped.generator.highest_loads,
                        size,
                        flows,
                        effort,
                        loss_ratio=LOSS_RATIO,
                        numbers_packets=driver.numbers_packets,
                        sends_probes=not driver.keeps_log,
                    )
                except Unsupported as error:
                    notes.append(f"{size.name} is left out: {error}")
                    continue
                points.append(point)
                report(point, len(points), len(frames) * len(flow_counts))
    if not points:
        raise Unsupported("; ".join(dict.fromkeys(notes)))
    return Qualification(
        key=key,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        sending=sending,
        way=way,
        loss_ratio=LOSS_RATIO,
        trial_s=effort.trial_s,
        points=tuple(points),
        notes=tuple(dict.fromkeys(notes)),
        simulated=world.simulation is not None,
    )


def fastest_way(
    topology: Topology, world: Testbed, key: QualificationKey, flows: int
) -> tuple[str | None, tuple[str, ...]]:
    """Return the driver that sends most without loss on the generator's ports, and keeps its rate; and what was found.

    Returns:
        None where that is the testbed's own, or there is no choice.

    Raises:
        CsitError: Nothing comes back by the testbed's own driver, or the testbed is lost.
    """
    own = topology.tg.generator.driver
    rates: dict[str | None, float] = {}
    said = []
    for way in (None, *driver_registry.generators()[own].ways):
        name = way or own
        try:
            found = qualify(
                topology, world, key, frames=[frame(WAY_FRAME)], flow_counts=(flows,), effort=BRIEF, way=way
            )
        except CsitError as error:
            if way is None:
                raise
            said.append(f"{name}: {error}")
            continue
        (point,) = found.points
        late = point.rate_error is None or point.rate_error > MAX_RATE_ERROR
        rates[way] = 0.0 if late else point.loss_free_pps or 0.0
        error_words = "unknown" if point.rate_error is None else f"{point.rate_error:.2%}"
        late_words = f", rate error {error_words}" if late else ""
        said.append(
            f"{name}: {rate(point.loss_free_pps or 0.0)} of {WAY_FRAME} without loss by {found.sending}{late_words}"
        )
    best = max(rates, key=lambda way: rates[way] * (1.0 if way is not None else 1 + WAY_GAIN))
    return best, tuple(said)


def qualification_for_run(
    topology: Topology, world: Testbed, environment: Environment, report: Callable[[str], None], folder: Path = FOLDER
) -> Qualification | None:
    """Return the kept qualification of a testbed's generator; where there is none, measure a short one and keep it.

    Returns:
        None where the generator cannot be looped back, or is simulated and has no limits of its own.

    Raises:
        CsitError: Nothing comes back, or it cannot be kept.
    """
    if world.simulation is not None:
        if not world.simulation.get("generator"):
            return None
    elif reason := why_not(topology):
        report(f"the generator is not qualified: {reason}")
        return None
    key = key_of(topology, environment, port_kind(topology))
    if world.simulation is None and (found := stored(key, folder)) is not None:
        return found
    driver = driver_registry.generators()[key.generator]
    names = (f"{driver.least_frame_bytes}B",) if driver.keeps_log else BRIEF_FRAMES
    effort = _brief(topology)
    ports = "its ports are looped back" if not loop_cables(topology) else f"{key.nic} ports are looped back by a cable"
    report(f"qualifying the generator, once for this machine: {ports} for {effort_in_words(topology)}")
    made = qualify(topology, world, key, frames=[frame(name) for name in names], flow_counts=(2,), effort=effort)
    if not made.simulated:
        store(made, folder)
    return made


def qualify_again(
    topology: Topology,
    world: Testbed,
    found: Qualification,
    disproved: Iterable[QualifiedPoint],
    folder: Path = FOLDER,
) -> Qualification:
    """Measure points of a qualification again, in trials as long as before, and keep what is better than it was.

    Raises:
        CsitError: Nothing comes back, or it cannot be kept.
    """
    effort = _brief(topology).model_copy(update={"trial_s": found.trial_s})
    points = {(point.frame, point.flows): point for point in found.points}
    notes = list(found.notes)
    for point in disproved:
        made = qualify(
            topology, world, found.key, frames=[point.frame], flow_counts=(point.flows,), effort=effort, way=found.way
        )
        notes += made.notes
        (again,) = made.points
        if (again.loss_free_pps or 0.0) > (point.loss_free_pps or 0.0):
            points[point.frame, point.flows] = again
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")
    changed = {"points": tuple(points.values()), "notes": tuple(dict.fromkeys(notes)), "measured_at": measured_at}
    made = found.model_copy(update=changed)
    if not made.simulated:
        store(made, folder)
    return made


def _brief(topology: Topology) -> Effort:
    return LOGGED if driver_registry.generators()[topology.tg.generator.driver].keeps_log else BRIEF


def effort_in_words(topology: Topology) -> str:
    """Return how long a run takes for the qualification of a point."""
    return "up to two minutes" if _brief(topology) is LOGGED else "some seconds"


def why_not(topology: Topology) -> str | None:
    """Return why a qualification would not be one of the ports that the testbed's tests use; None where it would."""
    if reason := no_loop_back(topology):
        return reason
    return no_cable(topology) if topology.world is World.LAB else None


@contextmanager
def looped_back(plan: Plan, world: Testbed, largest: Frame, generator: str | None = None) -> Iterator[Parts]:
    """Start a generator whose ports are joined to each other, and stop it.

    Raises:
        CsitError: It cannot be started.
    """
    cell = Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=0)
    asked = MeasurementRequest(
        test_type=TestType.MRR, cell=cell, frame=largest, profile=profile("ladder"), generator=generator
    )
    parts = world.loop_back(plan, asked)
    with ExitStack() as stack:
        for part in (*parts.cables, parts.generator):
            stack.callback(part.stop)
            part.start()
        yield parts
