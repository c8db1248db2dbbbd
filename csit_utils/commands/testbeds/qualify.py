"""`qualify`: measure what a testbed's traffic generator can do by itself."""

import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.report.units import latency, percent, rate, seconds
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.qualification import Qualification, QualifiedPoint
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.loop_back import MAX_FLOWS, loop_cables, no_cable, no_loop_back, port_kind
from resources.libraries.python.recording.qualifications import FOLDER, key_of, store, stored
from resources.libraries.python.search.qualification import BRIEF, Effort
from resources.libraries.python.testbed.deployment.loop_back import fastest_way
from resources.libraries.python.testbed.deployment.loop_back import qualify as measure
from resources.libraries.python.testbed.kinds.factory import located, make_testbed

_MAX_FRAMES = 16
_HEADS = (
    "frame",
    "flows",
    "no loss",
    "loss <= 0.5 %",
    "sent",
    "arrived",
    "counted",
    "rate error",
    "gap p50",
    "p99",
    "p99.9",
    "floor",
)


def qualify(
    topology: Annotated[Path, typer.Argument(help="Topology file.")],
    frames: Annotated[str, typer.Option(help="Frame sizes and mixes, comma-separated.")] = "64B,570B,1518B,IMIX",
    flows: Annotated[
        str,
        typer.Option(help="Numbers of flows, comma-separated.", show_default="2,8; over cables, as many as they have"),
    ] = "",
    brief: Annotated[bool, typer.Option("--brief", help="Shorter trials, as at the start of a run.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the kept qualification; measure nothing.")] = False,
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of qualifications.", show_default="results/qualifications")
    ] = FOLDER,
    form: FORMAT = TableForm.TABLE,
) -> None:
    """Measure the highest rates of the generator by itself.

    Measures rates, rate error, gaps between frames and the latency floor. Its ports are joined to each other, with no
    system under test between them. The result is kept by generator, version, kind of ports, machine and kernel; results
    of later runs that are beyond it have the verdict *unqualified*. A run without a qualification begins with a brief
    one. A lab's generator is looped back over the cables that join ports of its machine, else over virtual ports there.
    Where the driver is auto, AF_XDP sockets are tried too, and runs send by what is faster.

    \b
    Examples:
    ./csit qualify topologies/local.yaml               # this machine, two minutes
    ./csit qualify topologies/local.yaml --frames 64B --flows 2,16,64
    ./csit qualify topologies/local.yaml --show --format csv
    """  # noqa: D301 - \b keeps the lines of the examples apart
    sizes = tuple(frame(name) for name in _listed("--frames", frames))
    chosen = load_topology(topology)
    if reason := no_loop_back(chosen):
        raise Unsupported(reason)
    counts = tuple(_count(text) for text in _listed("--flows", flows or _usual_flows(chosen)))
    if chosen.world is World.LAB and (reason := no_cable(chosen)):
        typer.echo(f"looped back over virtual ports, not NICs: {reason}", err=True)
    chosen = located(chosen)
    effort = BRIEF if brief else Effort()
    with closing(make_testbed(chosen)) as world:
        for line in world.open():
            typer.echo(line, err=True)
        key = key_of(chosen, world.environment(), port_kind(chosen))
        found = stored(key, folder) if show else None
        if show and found is None:
            raise ConfigError(f"{folder}: no qualification of {key}; ./csit qualify {topology} measures one")
        if found is None:
            way, compared = (None, ()) if brief else fastest_way(chosen, world, key, counts[0])
            for line in compared if len(compared) > 1 else ():
                typer.echo(line, err=True)
            progress = partial(_print_progress, time.monotonic())
            found = measure(
                chosen, world, key, frames=sizes, flow_counts=counts, effort=effort, way=way, report=progress
            )
            path = store(found, folder) if chosen.world is not World.SIM else None
            if path is not None:
                typer.echo(f"kept in {path}", err=True)
    _print(found, form)


def _listed(option: str, text: str) -> list[str]:
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not 1 <= len(names) <= _MAX_FRAMES:
        raise ConfigError(f"{option} '{text[:40]}': 1 to {_MAX_FRAMES}, separated by commas")
    return names


def _usual_flows(topology: Topology) -> str:
    """Numbers of flows that are measured by default; a cable has one each way."""
    most = 2 * len(loop_cables(topology))
    return ",".join(str(count) for count in sorted({min(2, most), min(8, most)})) if most else "2,8"


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not 1 <= int(text) <= MAX_FLOWS:
        raise ConfigError(f"--flows '{text[:40]}': a number from 1 to {MAX_FLOWS}")
    return int(text)


def _print_progress(begin_s: float, point: QualifiedPoint | None, done: int, points: int) -> None:
    if point is None or not sys.stderr.isatty():
        return
    left_s = (time.monotonic() - begin_s) / done * (points - done)
    left = f", about {seconds(left_s)} left" if done < points else ""
    text = f"{point.frame.name}, {point.flows} flows: {rate(point.loss_free_pps)} without loss"
    typer.echo(f"{done}/{points} {text}{left}", err=True)


def _print(found: Qualification, form: TableForm) -> None:
    lines = [TableLine(_texts(point), _raw(found, point)) for point in found.points]
    if form is TableForm.TABLE and sys.stdout.isatty():
        simulated = "SIMULATED: " if found.simulated else ""
        print_sentence(f"{simulated}{found.key}; {found.sending or 'sending method unknown'}; {found.measured_at}")
    print_table(_HEADS, lines, form, ("frame",))
    for note in found.notes:
        print_sentence(f"{note}.", err=True)


def _texts(point: QualifiedPoint) -> tuple[str, ...]:
    rates = (point.loss_free_pps, point.highest_pps, point.offered_pps, point.received_pps, point.counted_pps)
    times_ns = (point.gap_p50_ns, point.gap_p99_ns, point.gap_p999_ns, point.floor_ns)
    texts = (*map(rate, rates), percent(point.rate_error), *map(latency, times_ns))
    return point.frame.name, str(point.flows), *texts


def _raw(found: Qualification, point: QualifiedPoint) -> dict[str, object]:
    return {
        **point.model_dump(mode="json"),
        "frame": point.frame.name,
        **{f"key_{name}": value for name, value in found.key.model_dump(mode="json").items()},
        "measured_at": found.measured_at,
        "sending": found.sending,
        "simulated": found.simulated,
        "notes": list(found.notes),
    }
