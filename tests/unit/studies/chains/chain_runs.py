"""Chains that were never measured: runs with a known truth, for tests of the analysis."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from resources.libraries.python.model.measurements.features import Edge, FeatureSeries, StateGraph
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.request.nf_size import NfSize
from resources.libraries.python.studies.chains.model import ChainRun, spec

FRAME = Frame(name="512B", parts=(FramePart(frame_bytes=512),))


VNFS = (
    spec.VnfSpec(name="gateway", kind=NfKind("linux_gateway")),
    spec.VnfSpec(name="firewall", kind=NfKind("linux_firewall")),
    spec.VnfSpec(name="nat", kind=NfKind("linux_nat")),
    spec.VnfSpec(name="monitor", kind=NfKind("tcpdump"), mode=spec.Mode.PASSIVE),
)
FAULT = spec.Fault(chain=("nat", "gateway"), vnf="nat", limits=Limits(cpu=0.02))


def four_vnfs(**changes: object) -> spec.ChainStudySpec:
    """All pairs of four VNFs of the kernel under two loads."""
    loads = tuple(spec.Workload(volume_bps=each, frame=frame("64B")) for each in (2e6, 4e6))
    asked: dict[str, object] = {"name": "study", "vnfs": VNFS, "lengths": (2,), "workloads": loads, "duration_s": 4}
    return spec.ChainStudySpec.model_validate({**asked, **changes})


def workload(volume_bps: float) -> spec.Workload:
    return spec.Workload(volume_bps=volume_bps, frame=FRAME)


def chain(*names: str, memory_mib: int | None = None) -> spec.Chain:
    members = (spec.Member(name=name, size=NfSize.ONE, memory_mib=memory_mib) for name in names)
    return spec.Chain(members=tuple(members))


def spec_of(
    names: Sequence[str], policies: Sequence[str] = (), lengths: Sequence[int] = (),
    volumes_bps: Sequence[float] = (2e8,),
) -> spec.ChainStudySpec:  # fmt: skip
    return spec.ChainStudySpec(
        name="study", vnfs=tuple(spec.VnfSpec(name=name, kind=NfKind("linux_router")) for name in names),
        policies=tuple(policies), lengths=tuple(lengths), workloads=tuple(map(workload, volumes_bps)),
    )  # fmt: skip


def run(
    what: spec.Chain, volume_bps: float, throughput_bps: float,
    features: Mapping[str, Mapping[str, Sequence[float | None]]] | None = None, *, graphs: Iterable[StateGraph] = (),
    planted: str | None = None,
) -> ChainRun:  # fmt: skip
    """Features by owner and name, a value a second."""
    return ChainRun(
        chain=what,
        workload=workload(volume_bps),
        offered_bps=volume_bps,
        throughput_bps=throughput_bps,
        loss_ratio=1 - throughput_bps / volume_bps,
        latency_s=None,
        idle_latency_s=None,
        series=tuple(
            FeatureSeries(owner=owner, feature=name, values=tuple(values))
            for owner, rows in (features or {}).items()
            for name, values in rows.items()
        ),
        graphs=tuple(graphs),
        planted=planted,
    )


def noisy_runs(
    chains: Iterable[spec.Chain], volumes_bps: Sequence[float], faulty: spec.Chain | None = None, throttled: str = "",
    seed: int = 1,
) -> list[ChainRun]:  # fmt: skip
    """VNFs whose CPU follows the volume with 3 % noise; in one chain one of them is throttled to a third.

    Beside what the fault touches each VNF has features of nothing but noise, and those behind it get fewer packets.
    """
    draw = Random(seed)
    found = []
    for what in chains:
        for volume_bps in volumes_bps:
            is_faulty = what == faulty
            passed, features = 1.0, {}
            for name in what.order:
                if is_faulty and name == throttled:
                    passed = 0.33
                    cpu, stopped = 10.0, 67.0
                else:
                    cpu, stopped = 40 * passed * volume_bps / 1e8, 0.0
                truth = {
                    "cpu_percent": cpu, "throttled_percent": stopped, "rx_pps": passed * volume_bps / 4096,
                    "tx_pps": passed * volume_bps / 4096, "memory_bytes": 3e7, "voluntary_switches": 900.0,
                    "waiting_percent": 4.0, "threads": 3.0,
                }  # fmt: skip
                features[name] = {
                    feature: [value * draw.gauss(1, 0.03) if feature != "threads" else value for _ in range(5)]
                    for feature, value in truth.items()
                }
            throughput_bps = passed * volume_bps * draw.gauss(0.98, 0.005)
            planted = f"{throttled} is limited to 0.1 CPUs" if is_faulty else None
            found.append(run(what, volume_bps, throughput_bps, features, planted=planted))
    return found


def graph(owner: str, *edges: tuple[str, str, int, float], traced_s: float = 1.0, kvm: bool = False) -> StateGraph:
    return StateGraph(
        owner=owner, source="kvm" if kvm else "kernel", traced_s=traced_s,
        events=sum(count for _, _, count, _ in edges), lost=0,
        edges=tuple(Edge(before=one, after=two, count=count, seconds=s) for one, two, count, s in edges),
    )  # fmt: skip
