"""A whole sizing: Clearwater and an IDS on the simulated testbed, or a world of fakes; record, failures, folder."""

import json
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from resources.libraries.python import errors
from resources.libraries.python.drivers.sim.sizing import VirtualTime
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import Flavor, MeasuredSize, Sizing, Trace, Use
from resources.libraries.python.planning.edges import service_cable
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.studies.sizing.analysis import TraceRow
from resources.libraries.python.studies.sizing.run import LoadMonitor, ServiceSizing
from resources.libraries.python.testbed.deployment.parts import Host
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport, RealTime
from tests.builders import SIM, TOPOLOGIES, raising, shell_program
from tests.unit.studies.sizing.sizing_runs import SPECS, run_sizing, service, workload

MB = 2**20


Traces = dict[tuple[str, str], list[TraceRow]]
"""By size and instance."""


def clearwater(duration_s: float) -> tuple[Sizing, Traces]:
    folder, rows = SPECS / "clearwater", Traces()
    asked = load_specifications(folder / "deployment.json", folder / "workload.json")
    asked = replace(asked, workload=asked.workload.model_copy(update={"duration_s": duration_s}))
    here = SimulatedTestbed(SIM).host(asked, folder)

    def trace(size: str, instance: str, more: list[TraceRow]) -> None:
        rows.setdefault((size, instance), []).extend(more)

    return run_sizing(asked.deployment, asked.workload, here.orchestrator, time=here.time, trace=trace), rows


def cpu_at_capacity(sized: MeasuredSize) -> dict[str, float]:
    point = next(row for row in sized.offered if row.load == sized.capacity)
    return {name: use.cpu for name, use in point.use.items() if use.cpu is not None}


@pytest.mark.slow
def test_directed_search_of_clearwater_goes_the_way_of_the_paper() -> None:
    found, _ = clearwater(300)
    assert [(row.name, row.vcpus, row.capacity, row.bottleneck) for row in found.sizes] == [
        ("bn1s-sp1s-hs1s", 3, 350, "sprout"),
        ("bn1s-sp1m-hs1s", 4, 400, "homestead"),
        ("bn1s-sp1m-hs1m", 5, 600, "sprout"),
    ]
    assert (found.stopped, found.best) == ("resources exhausted", "bn1s-sp1m-hs1m")
    best = cpu_at_capacity(found.sizes[-1])
    assert all(0.75 <= cpu <= 0.85 for cpu in best.values()), best
    first = cpu_at_capacity(found.sizes[0])
    assert first["sprout-1"] / first["bono-1"] == pytest.approx(2, rel=0.01)
    assert all(sized.overload_from > sized.capacity for sized in found.sizes)


def test_what_is_not_simulated_is_unsupported() -> None:
    asked = load_specifications(SPECS / "snort" / "deployment.json", SPECS / "snort" / "workload.json")
    with pytest.raises(errors.Unsupported, match="snort cannot be simulated"):
        SimulatedTestbed(SIM).host(asked, SPECS)
    with pytest.raises(errors.ConfigError, match="missing ids of snort"):
        SimulatedTestbed(SIM).host(asked, SPECS / "clearwater")


def test_every_instance_is_traced_each_second() -> None:
    found, rows = clearwater(5)
    assert {size for size, _ in rows} == {row.name for row in found.sizes}
    first = [row for row in rows["bn1s-sp1s-hs1s", "sprout-1"] if row.load == 200]
    assert [row.repetition for row in first] == [number for number in range(1, 11) for _ in range(5)]
    assert [row.time_s for row in first] == [float(second) for second in range(1, 51)]
    kept = {row.load: row.trace for row in found.sizes[0].offered if row.trace is not None}
    assert list(kept) == [200, 350, found.sizes[0].offered[-1].load] and len(kept[200].indicators) == 5
    for row in first:
        assert row.cpu_percent == pytest.approx(200 * 0.27, rel=0.01)
        assert row.network_bps == pytest.approx(200 * 14000 * 8, rel=0.01)
        assert row.memory_bytes == pytest.approx(700 * MB + 200 * 200 * 1024, rel=0.01)


def faulty(where: str) -> tuple[Any, list[str]]:
    """An orchestrator, with its time, of a service that fails at the step given, and what was called."""
    time, called = VirtualTime(), list[str]()

    def step(what: str, result: Any = None) -> Any:
        called.append(what)
        if what == where:
            raise errors.CommandFailed((what,), 1, "no")
        if (what, where) in (("offer", "node"), ("stop", "removal")):
            raise errors.ConnectionFailed("DUT1: the agent ended with 137")
        return result

    def offer(load: float) -> LoadReport:
        time.advance(10)
        return step("offer", LoadReport(load))

    problems = ("all processes of sprout-1 have ended",) if where == "problems" else ()
    steps = {"start": partial(step, "start"), "use": partial(step, "use", {}), "stop": partial(step, "stop")}
    there = SimpleNamespace(offer=offer, facts=dict, problems=lambda: problems, **steps)
    return SimpleNamespace(service=lambda _: there, time=time), called


LOAD = workload(200, 1100, 50, repeat=10, stop={"below": 0.8, "loads": 2}, duration_s=300, unit="calls/s")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("start", "start ended with 1: no"),
        ("offer", "offer ended with 1: no"),
        ("use", "use ended with 1: no"),
        ("problems", "at 200 calls/s: all processes of sprout-1 have ended"),
        ("node", "DUT1: the agent ended with 137"),
    ],
)
def test_every_failure_is_reported_and_the_service_removed(where: str, said: str) -> None:
    here, called = faulty(where)
    found = run_sizing(service(), LOAD, here, time=here.time)
    assert (found.stopped, found.sizes[0].failed) == ("failed", said)
    assert (called[-1], called.count("stop")) == ("stop", 1)


def test_a_service_that_cannot_be_removed_stops_the_run_unless_its_node_is_lost() -> None:
    """The agent of a lost node removes what it has deployed, and the load had been measured."""
    here, called = faulty("stop")
    with pytest.raises(errors.RunStopped, match="bn1s-sp1s-hs1s could not be removed: stop ended with 1: no"):
        run_sizing(service(), LOAD, here, time=here.time)
    here, called = faulty("removal")
    found = run_sizing(service(), LOAD, here, time=here.time)
    assert found.stopped != "failed"
    assert [each.failed for each in found.sizes] == [None] * len(found.sizes)
    assert called.count("stop") == len(found.sizes)


def test_means_are_over_the_time_in_which_load_is_offered() -> None:
    """A service uses half a CPU while a load is offered, which takes twice as long as it should."""
    time, flavors = VirtualTime(), {"a-1": Flavor(vcpus=2, memory_mb=64), "b-1": Flavor(vcpus=1, memory_mb=64)}

    def offer(load: float) -> LoadReport:
        for _ in range(20):
            time.advance(1)
        return LoadReport(load, seconds=(load,) * 10)

    def use() -> dict[str, InstanceUse]:
        return {"a-1": InstanceUse(0.5 * min(time.now(), 10.0), 32 * MB, None)}

    watched, rows = LoadMonitor(SimpleNamespace(offer=offer, use=use), flavors, time).watch(100, 1, 10)
    assert watched.use["a-1"] == Use(cpu=0.25, memory=0.5, network_bps=None)
    assert watched.use["b-1"] == Use(cpu=None, memory=None, network_bps=None)
    assert [row.cpu_percent for row in rows["a-1"]] == [50.0] * 10 + [0.0] * 10
    assert all(row.memory_bytes is None and row.cpu_percent is None for row in rows["b-1"])
    cpu = {"a-1": (0.25,) * 10 + (0.0,) * 10, "b-1": (None,) * 20}
    assert watched.trace == Trace(indicators=(100.0,) * 10, ends_s=tuple(map(float, range(1, 21))), cpu=cpu)


def test_real_time_ticks_beside_the_work_and_an_error_in_a_tick_is_raised_where_that_ends() -> None:
    ticks, enough, ticked = list[float](), threading.Event(), threading.Event()

    def tick() -> None:
        ticks.append(RealTime().now())
        if len(ticks) == 3:
            enough.set()

    with RealTime().every(0.02, tick):
        assert enough.wait(60)
    count = len(ticks)
    assert ticks == sorted(ticks)

    def failing() -> None:
        ticked.set()
        raise errors.CsitError("cannot be asked")

    with pytest.raises(errors.CsitError, match="cannot be asked"), RealTime().every(0.01, failing):
        assert ticked.wait(60)
    assert len(ticks) == count, "it ticks no more"


class FakeWorld:
    """Deploys services that carry up to 200 calls per second."""

    simulation = None
    drivers: ClassVar[dict[str, str]] = {}

    def __init__(self, *, broken: str = "", dies: int = 0) -> None:
        self._broken, self._dies = broken, dies
        self.time = VirtualTime()
        self.deployed = 0

    def host(self, *_: object) -> Host:
        return Host(self, self.time)

    def offer(self, load: float) -> LoadReport:
        self.time.advance(1.0)
        return LoadReport(min(load, 200.0))

    def service(self, _: object) -> Any:
        self.deployed += 1
        problems = ("edge-1 has ended",) if self.deployed <= self._dies else ()
        failed = raising(errors.CommandFailed(["install script of edge-1"], 3, self._broken))
        return SimpleNamespace(
            start=failed if self._broken else lambda: None,
            offer=self.offer,
            use=lambda: {"edge-1": InstanceUse(self.time.now() / 2, 1 << 20, None)},
            facts=lambda: {"instances": "made up", "oversubscribed": "3 instances need 3 CPUs, 2 available"},
            problems=lambda: problems,
            stop=lambda: None,
        )


def sizing(folder: Path, world: Any, *, vcpus: float = 1) -> ServiceSizing:
    for script in ("install.sh", "load.sh"):
        shell_program(folder / script, "")
    sizes = [{"components": {"edge": {"flavor": "small", "instances": count}}} for count in (1, 2)]
    components = [{"name": "edge", "short": "ed", "flavors": ["small"], "most_instances": 2}]
    deployment = {"vnf_name": "edges", "components": components, "install": "install.sh", "mode": "custom"}
    deployment |= {"flavors": {"small": {"vcpus": vcpus, "memory_mb": 64}}, "sizes": sizes}
    workload = {"range": {"min": 100, "max": 300}, "increase": 100, "generator": "load.sh", "duration_s": 1}
    files = folder / "deployment.json", folder / "workload.json"
    for path, content in zip(files, (deployment, workload), strict=True):
        path.write_text(json.dumps(content))
    return ServiceSizing(SIM, world, load_specifications(*files), fingerprint())


def run(test: ServiceSizing, folder: Path) -> Sizing:
    """As the test of a suite, which has a journal in its folder."""
    folder.mkdir(exist_ok=True)
    with test.journal()(folder / test.journal().FILE, test.digest()) as journal:
        test.resume(journal)
        found = test.run()
        test.enough()
        return found


def test_a_sizing_leaves_traces_tables_templates_of_whole_cpus_and_a_journal(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    test = sizing(tmp_path / "specs", FakeWorld())
    found = run(test, tmp_path / "out")
    assert [row.capacity for row in found.sizes] == [200.0, 200.0]
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    traces = {"ed1s/edge-1.csv", "ed2s/edge-1.csv", "ed2s/edge-2.csv"}
    assert files == {"sizing.csv", "sizing.jsonl", "heat/ed1s.yaml", "heat/ed2s.yaml", *traces}
    assert test.draft.sizing == found
    assert test.draft.facts["service"]["instances"] == "made up"
    assert test.draft.warnings == ["oversubscribed: 3 instances need 3 CPUs, 2 available"], "once for both sizes"
    run(sizing(tmp_path / "specs", FakeWorld(), vcpus=0.5), tmp_path / "parts")
    assert not (tmp_path / "parts" / "heat").exists()


def test_a_size_that_breaks_is_measured_once_more_and_one_that_failed_again_when_resumed(tmp_path: Path) -> None:
    world, again = FakeWorld(dies=2), FakeWorld()
    found = run(sizing(tmp_path, world), tmp_path / "out")
    assert world.deployed == 3
    assert [row.failed for row in found.sizes] == ["at 100 calls/s: edge-1 has ended", None]
    resumed = run(sizing(tmp_path, again), tmp_path / "out")
    assert [(row.capacity, row.carried_over) for row in resumed.sizes] == [(200.0, False), (200.0, True)]
    assert again.deployed == 1


def test_a_sizing_of_which_nothing_could_be_measured_fails_with_the_reason_and_is_recorded(tmp_path: Path) -> None:
    test = sizing(tmp_path, FakeWorld(broken="port 5060 is taken"))
    with pytest.raises(errors.CsitError, match=r"^nothing was measured: install script of edge-1 ended with 3: port"):
        run(test, tmp_path / "out")
    assert [row.failed is not None for row in test.draft.sizing.sizes] == [True, True]


@pytest.mark.parametrize("path", sorted(TOPOLOGIES.glob("available/*.yaml")), ids=lambda path: path.stem)
def test_it_joins_the_generator_with_the_first_dut(path: Path) -> None:
    lab = load_topology(path)
    near, far = service_cable(lab)
    ports = ((lab.tg_name, near.nic), (next(iter(lab.duts)), far.nic))
    ends = {lab.nodes[name].interfaces[nic.port].link for name, nic in ports}
    assert len(ends) == 1, "both ports are on one link"
    assert (near.owner, far.owner) == ("service-load", "service-bridge") and near.mac != far.mac
