"""Records of all kinds of characterizations, with profiles and predictions that are computed from their loads."""

from functools import cache
from typing import Any

import numpy as np

from csit_utils.dataset.items import Recorded, status_of
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.model.service import spec as services
from resources.libraries.python.model.service.workload import WorkloadSpec
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.recording.records import RECORDS
from resources.libraries.python.studies.sizing.model import SizingRecord
from resources.libraries.python.studies.sweep import model as sweeps
from resources.libraries.python.studies.sweep.analysis.chain_prediction import MeasuredPath, MeasuredVnf, predict
from resources.libraries.python.studies.sweep.analysis.profile import profile_of_sweep
from resources.libraries.python.studies.sweep.model import Profile
from tests.loaded import Dataset
from tests.unit.csit_utils.builders import B64, ENVIRONMENT

B512 = Frame(name="512B", parts=(FramePart(frame_bytes=512),))
FIREWALL = (NfKind("linux_firewall"),)
ROUTER_FIREWALL = (NfKind("linux_router"), NfKind("linux_firewall"))
LOADS = 12


def record(kind: str, name: str, **parts: Any) -> Any:
    """A record that passed on the local testbed, unless `parts` say otherwise."""
    usual = {
        "test_id": f"Characterization.{kind.title()}.{name}", "test_name": name, "tags": (kind.upper(),),
        "started_at": "2026-01-01T00:00:00+00:00", "finished_at": "2026-01-01T00:01:00+00:00", "passed": True,
        "message": "", "world": World.LOCAL, "simulated": False, "testbed": "local", "environment": ENVIRONMENT,
        "drivers": {"generator": "auto"},
    }  # fmt: skip
    if kind in ("sweep", "bursts", "chain"):
        return sweeps.SweepRecord.model_validate({**usual, **parts, "pattern": kind})
    return RECORDS[kind].model_validate({**usual, **parts})


def sweep_of(
    name: str, kinds: tuple[NfKind, ...], *, capacity_pps: float = 2e5, frame: Frame = B64, size: NfSize = NfSize.ONE
) -> sweeps.Sweep:
    """A service that lets everything through up to its capacity; the last VNF is the hungriest."""
    vnfs = tuple(
        sweeps.Vnf(name=f"nf-1-{node}", kind=kind, vcpus=int(size.cores)) for node, kind in enumerate(kinds, 1)
    )
    rates = np.linspace(capacity_pps / 8, 1.5 * capacity_pps, LOADS).tolist()
    samples = tuple(_second(rate, second, vnfs, capacity_pps) for rate in rates for second in range(2))
    points = tuple(_mean(sample, frame) for sample in samples[::2])
    spec = sweeps.SweepSpec(rates=sweeps.Rates(start_pps=1e4, stop_pps=3e5, step_pps=1e4), duration_s=2, frame=frame)
    cell = Cell(service_type=ServiceType.CSP, nf_chains=1, nf_nodes=len(kinds), nf_kinds=kinds, nf_sizes=(size,))
    return sweeps.Sweep(name=name, cell=cell, spec=spec, vnfs=vnfs, samples=samples, points=points)


def _second(rate_pps: float, second: int, vnfs: tuple[sweeps.Vnf, ...], capacity_pps: float) -> sweeps.SweepSample:
    passed = min(rate_pps, capacity_pps)
    full = min(1.0, rate_pps / capacity_pps)
    return sweeps.SweepSample(
        rate_pps=rate_pps, second=second, input_pps=rate_pps, output_pps=passed,
        loss_ratio=1 - passed / rate_pps if rate_pps else None,
        delay_s=2e-3 if rate_pps >= capacity_pps else 5e-5 + 2e-5 * full,
        cpu={vnf.name: (full if vnf is vnfs[-1] else 0.5 * full,) * vnf.vcpus for vnf in vnfs},
    )  # fmt: skip


def _mean(sample: sweeps.SweepSample, frame: Frame) -> sweeps.SweepPoint:
    bits = 8 * frame.mean_bytes
    return sweeps.SweepPoint(
        rate_pps=sample.rate_pps, samples=2, input_pps=sample.input_pps, sender_pps=sample.input_pps,
        output_pps=sample.output_pps, input_bps=bits * sample.input_pps, output_bps=bits * sample.output_pps,
        loss_ratio=sample.loss_ratio, delay_s=sample.delay_s, cpu=sample.cpu,
    )  # fmt: skip


def profiled(sweep: sweeps.Sweep) -> Profile:
    """Its profile, fitted once for all tests."""
    return _fitted(sweep.model_dump_json())


@cache
def _fitted(text: str) -> Profile:
    return profile_of_sweep(sweeps.Sweep.model_validate_json(text))


def swept(test_name: str, sweep: sweeps.Sweep, **parts: Any) -> sweeps.SweepRecord:
    """The record of a sweep, profiled."""
    return record("sweep", test_name, sweep=sweep, profile=profiled(sweep), **parts)


def chained(path: MeasuredPath | None = None, **parts: Any) -> sweeps.SweepRecord:
    """A router and a firewall, predicted from both alone, and from the path without them."""
    chain = sweep_of("router-firewall", ROUTER_FIREWALL, capacity_pps=1.9e5)
    alone = (sweep_of("router", (NfKind("linux_router"),), capacity_pps=4e5), sweep_of("firewall", FIREWALL))
    prediction = predict(chain.name, [MeasuredVnf(profiled(each)) for each in alone], chain.points, "hungriest", path)
    return record(
        "chain", "Router And Firewall", sweep=chain, profile=profiled(chain), predictions=(prediction,), **parts
    )


def burst(**parts: Any) -> sweeps.SweepRecord:
    """Two seconds on, one off, twice; a fifth of the first second of each burst is lost."""
    base = sweep_of("firewall", FIREWALL)
    bursts = sweeps.Bursts(rate_pps=2.5e5, on_s=2, off_s=1)
    loads = [2.5e5, 1e5, 0.0] * 2
    samples = tuple(_second(rate, second, base.vnfs, 2e5) for second, rate in enumerate(loads))
    spec = base.spec.model_copy(update={"rates": None, "bursts": bursts})
    sweep = base.model_copy(update={"spec": spec, "samples": samples, "points": ()})
    return record("bursts", "Bursts", sweep=sweep, **parts)


def sized(**parts: Any) -> SizingRecord:
    """A service of two components: one size carries 300, one 500 or more, one could not be deployed."""
    flavors = {name: {"vcpus": vcpus, "memory_mb": 512 * vcpus} for name, vcpus in (("s", 1), ("m", 2))}
    components = [{"name": name, "short": name[:2], "flavors": [*flavors]} for name in ("front", "back")]
    deployment = services.DeploymentSpec.model_validate(
        {"vnf_name": "proxy", "components": components, "flavors": flavors, "install": "i.sh", "mode": "directed"}
    )
    workload = WorkloadSpec.model_validate(
        {"range": {"min": 100, "max": 500}, "increase": 100, "repeat": 2, "generator": "load.sh"}
    )
    sizing = services.Sizing(
        deployment=deployment, workload=workload, best="fr1m-ba1s", stopped="failed", planned=None,
        sizes=(_size("s", "s", 300.0), _size("m", "s", 500.0), _size("m", "m", None)),
        steps=("fr1s-ba1s first: the smallest size.", "Ended: fr1m-ba1m could not be deployed."),
        notes=("back does not scale.",),
    )  # fmt: skip
    return record("sizing", "Proxy", sizing=sizing, **parts)


def traced(record: SizingRecord, loads: tuple[float, ...] = (100.0, 300.0, 500.0)) -> SizingRecord:
    """The record of a sizing, with the seconds of some loads of its first size."""
    sizing = record.sizing
    first, *others = sizing.sizes
    rows = [row.model_copy(update={"trace": _trace(row)}) if row.load in loads else row for row in first.offered]
    sizes = (first.model_copy(update={"offered": tuple(rows)}), *others)
    return record.model_copy(update={"sizing": sizing.model_copy(update={"sizes": sizes})})


def _trace(row: services.Offered) -> services.Trace:
    """Four seconds; the CPU of the fourth was not read."""
    front = (*[row.load / 1000] * 3, None)
    return services.Trace(
        indicators=(row.mean, row.mean - 10, row.mean, row.mean),
        ends_s=(1.0, 2.0, 3.0, 4.0),
        cpu={"front-1": front, "back-1": (0.5, 0.5, 0.5, 0.5)},
    )


def _size(front: str, back: str, capacity: float | None) -> services.MeasuredSize:
    vcpus, offered = {"s": 1, "m": 2}, []
    for load in [100.0 * number for number in range(1, 6)] if capacity else []:
        carried, uses = min(load, capacity or 0.0), services.Use(cpu=load / 1000, memory=0.25, network_bps=1e4 * load)
        offered.append(
            services.Offered(
                load=load, indicators=(carried, carried), mean=carried, stdev=0.0 if load == carried else 20.0,
                use={"front-1": uses, "back-1": uses},
            )
        )  # fmt: skip
    return services.MeasuredSize(
        size=services.Size(components={"front": services.Share(flavor=front), "back": services.Share(flavor=back)}),
        name=f"fr1{front}-ba1{back}", vcpus=vcpus[front] + vcpus[back], memory_mb=1024, offered=tuple(offered),
        capacity=capacity, at_top=capacity == 500.0, bottleneck="front" if capacity else None,
        overload_from=400.0 if capacity == 300.0 else None, failed=None if capacity else "back-1 did not start",
        deploy_s=1.0,
    )  # fmt: skip


def one_of_each(**parts: Any) -> list[Record]:
    """Sweeps of two frames and of two sizes with a router, a chain, bursts and a sizing."""
    flagged = sweep_of("firewall", FIREWALL)
    off = flagged.points[2].model_copy(update={"flagged": "input 3 % below what was asked"})
    flagged = flagged.model_copy(update={"points": (*flagged.points[:2], off, *flagged.points[3:])})
    return [
        swept("Firewall", flagged, warnings=("data threads share cores: oversubscribed",), **parts),
        swept("Firewall 512B", sweep_of("firewall", FIREWALL, frame=B512), **parts),
        swept("Firewall 2C", sweep_of("firewall", FIREWALL, size=NfSize.TWO, capacity_pps=3.9e5), **parts),
        swept("Router", sweep_of("router", (NfKind("linux_router"),), capacity_pps=4e5), **parts),
        chained(**parts),
        burst(**parts),
        sized(**parts),
    ]


def dataset_of(*records: Record) -> Dataset:
    """As if their files had been read."""
    return Dataset(recorded=[Recorded(made, "x.xml", status_of(made), made.message) for made in records])
