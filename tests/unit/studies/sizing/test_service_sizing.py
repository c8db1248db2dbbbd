"""A sizing test around a world that deploys nothing: record, failures, folder, cable and sentences."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, cast

import pytest

from resources.libraries.python.drivers.sim.sizing import VirtualTime
from resources.libraries.python.errors import CommandFailed, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.service.load import load_specifications
from resources.libraries.python.model.service.spec import Size, Sizing
from resources.libraries.python.planning.edges import service_cable
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.studies.sizing.planning.sizes import cost
from resources.libraries.python.studies.sizing.run import ServiceSizing, cost_in_words
from resources.libraries.python.testbed.deployment.parts import Host, Testbed
from resources.libraries.python.testbed.roles.service import InstanceUse, LoadReport
from tests.builders import SIM


class FakeService:
    """Carries up to 200 calls per second."""

    def __init__(self, time: VirtualTime, broken: str, *, stuck: bool, dies: bool) -> None:
        self._time, self._broken, self._stuck, self._dies = time, broken, stuck, dies

    def start(self) -> None:
        if self._broken:
            raise CommandFailed(["install script of edge-1"], 3, self._broken)

    def offer(self, load: float) -> LoadReport:
        self._time.advance(1.0)
        return LoadReport(min(load, 200.0))

    def use(self) -> Mapping[str, InstanceUse]:
        return {"edge-1": InstanceUse(self._time.now() / 2, 1 << 20, None)}

    def facts(self) -> Mapping[str, str]:
        return {"instances": "made up", "oversubscribed": "3 instances need 3 CPUs, 2 available"}

    def problems(self) -> tuple[str, ...]:
        return ("edge-1 has ended",) if self._dies else ()

    def stop(self) -> None:
        if self._stuck:
            raise CsitError("control group csit-edge-1 cannot be removed")


class FakeWorld:
    """Deploys fakes."""

    simulation = None
    drivers: ClassVar[dict[str, str]] = {}

    def __init__(self, *, broken: str = "", stuck: bool = False, dies: int = 0) -> None:
        self._broken, self._stuck, self._dies = broken, stuck, dies
        self.time = VirtualTime()
        self.deployed = 0

    def host(self, asked: object, folder: Path) -> Host:
        del asked, folder
        return Host(self, self.time)

    def service(self, size: Size) -> FakeService:
        del size
        self.deployed += 1
        return FakeService(self.time, self._broken, stuck=self._stuck, dies=self.deployed <= self._dies)


def sizing(folder: Path, world: FakeWorld, *, vcpus: float = 1) -> ServiceSizing:
    """Two sizes of a service of one component."""
    for script in ("install.sh", "load.sh"):
        (folder / script).write_text("#!/bin/sh\n")
        (folder / script).chmod(0o755)
    sizes = [{"components": {"edge": {"flavor": "small", "instances": count}}} for count in (1, 2)]
    (folder / "deployment.json").write_text(
        json.dumps(
            {
                "vnf_name": "edges",
                "components": [{"name": "edge", "short": "ed", "flavors": ["small"], "most_instances": 2}],
                "flavors": {"small": {"vcpus": vcpus, "memory_mb": 64}},
                "install": "install.sh",
                "mode": "custom",
                "sizes": sizes,
            }
        )
    )
    (folder / "workload.json").write_text(
        json.dumps({"range": {"min": 100, "max": 300}, "increase": 100, "generator": "load.sh", "duration_s": 1})
    )
    files = folder / "deployment.json", folder / "workload.json"
    return ServiceSizing(SIM, cast(Testbed, world), load_specifications(*files), fingerprint())


def run(test: ServiceSizing, folder: Path) -> Sizing:
    """As the test of a suite, which has a journal in its folder."""
    folder.mkdir(exist_ok=True)
    with test.journal()(folder / test.journal().FILE, test.digest()) as journal:
        test.resume(journal)
        found = test.run()
        test.enough()
        return found


def test_a_sizing_leaves_traces_tables_templates_and_a_journal(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    test = sizing(tmp_path / "specs", FakeWorld())
    found = run(test, tmp_path / "out")
    assert [row.capacity for row in found.sizes] == [200.0, 200.0]
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {
        "sizing.csv",
        "sizing.jsonl",
        "ed1s/edge-1.csv",
        "ed2s/edge-1.csv",
        "ed2s/edge-2.csv",
        "heat/ed1s.yaml",
        "heat/ed2s.yaml",
    }
    assert test.draft.sizing == found
    assert test.draft.facts["service"]["instances"] == "made up"
    assert test.draft.warnings == ["oversubscribed: 3 instances need 3 CPUs, 2 available"], "once for both sizes"


def test_parts_of_cpus_have_no_templates(tmp_path: Path) -> None:
    run(sizing(tmp_path, FakeWorld(), vcpus=0.5), tmp_path / "out")
    assert not (tmp_path / "out" / "heat").exists()


def test_a_killed_sizing_resumes_with_its_next_size_and_finds_the_same(tmp_path: Path) -> None:
    whole = run(sizing(tmp_path, FakeWorld()), tmp_path / "out")
    journal = tmp_path / "out" / "sizing.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]) + lines[2][:100])  # killed while it wrote the second size
    world = FakeWorld()
    found = run(sizing(tmp_path, world), tmp_path / "out")
    assert world.deployed == 1
    assert [row.carried_over for row in found.sizes] == [True, False]
    plain = tuple(row.model_copy(update={"carried_over": False}) for row in found.sizes)
    assert found.model_copy(update={"sizes": plain}) == whole


def test_a_size_that_breaks_is_measured_once_more_and_one_that_failed_again_when_resumed(tmp_path: Path) -> None:
    world = FakeWorld(dies=2)
    found = run(sizing(tmp_path, world), tmp_path / "out")
    assert world.deployed == 3
    assert [row.failed for row in found.sizes] == ["at 100 calls/s: edge-1 has ended", None]
    again = FakeWorld()
    assert [row.capacity for row in run(sizing(tmp_path, again), tmp_path / "out").sizes] == [200.0, 200.0]
    assert again.deployed == 1


def test_a_sizing_of_which_nothing_could_be_measured_fails_with_the_reason_and_is_recorded(tmp_path: Path) -> None:
    test = sizing(tmp_path, FakeWorld(broken="port 5060 is taken"))
    with pytest.raises(CsitError, match=r"^nothing was measured: install script of edge-1 ended with 3: port 5060 is"):
        run(test, tmp_path / "out")
    assert [row.failed is not None for row in test.draft.sizing.sizes] == [True, True]


LABS = Path(__file__).parents[4] / "topologies" / "available"


@pytest.mark.parametrize("path", sorted(LABS.glob("*.yaml")), ids=lambda path: path.stem)
def test_it_joins_the_generator_with_the_first_dut(path: Path) -> None:
    lab = load_topology(path)
    near, far = service_cable(lab)
    assert near.nic is not None
    assert far.nic is not None
    ends = {
        lab.nodes[name].interfaces[nic.port].link
        for name, nic in ((lab.tg_name, near.nic), (next(iter(lab.duts)), far.nic))
    }
    assert len(ends) == 1, "both ports are on one link"
    assert (near.owner, near.interface, far.owner, far.interface) == (
        "service-load", "eth0", "service-bridge", "uplink",
    )  # fmt: skip
    assert near.mac != far.mac
    assert near.vlan is None and far.vlan is None


SPECS = Path(__file__).parents[3] / "characterization" / "specs"


@pytest.mark.parametrize(
    ("deployment", "workload", "words"),
    [
        (
            "clearwater/deployment.json",
            "clearwater/workload.json",
            r"at most 4 sizes, at most 19 loads on each, each 10 times: at most \d+ h \d\d min",
        ),
        ("sip-service/deployment.json", "sip-service/reg-dereg.json", r"at most 4 sizes, at most 9 loads on each: .+"),
        ("http-proxy/deployment.json", "http-proxy/requests.json", r"4 sizes, at most 8 loads on each: at most .+"),
    ],
)
def test_the_cost_of_a_sizing_is_shown_before_it_runs(deployment: str, workload: str, words: str) -> None:
    asked = load_specifications(SPECS / deployment, SPECS / workload)
    assert re.fullmatch(words, cost_in_words(cost(asked.deployment, asked.workload)))
