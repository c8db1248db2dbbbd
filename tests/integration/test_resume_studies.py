"""Studies that are killed again and again end with the dataset of a whole run."""

import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from csit_utils.dataset.items import Recorded
from tests.integration.pauses import KEEPING, Moment, Paused
from tests.integration.preloaded import PreloadedRun
from tests.integration.robot_runs import ELSEWHERE, PROJECT, argv, csit, environment, run_robot
from tests.loaded import items

pytestmark = pytest.mark.parallel

SUITES = PROJECT / "tests" / "characterization"
SIM = ("-v", "TOPOLOGY:topologies/sim.yaml")
TIMES = re.compile(r'"(?:started_at|finished_at)":"[^"]*"|' + ELSEWHERE)
CHAINS = """\
name: five
vnfs:
  - {name: gateway, kind: linux_gateway}
  - {name: firewall, kind: linux_firewall}
  - {name: nat, kind: linux_nat, sizes: [1c, 0.5c]}
  - {name: router, kind: linux_router}
  - {name: monitor, kind: tcpdump, mode: passive}
lengths: [2]
workloads: {volumes_mbps: [2, 4], sessions: [1, 16], frames: [64B]}
duration_s: 2
faults: [{chain: [nat, gateway], vnf: nat, limits: {cpu: 0.02}}]
"""
INTERFERENCE = """\
name: three
frame: 512B
duration_s: 0.4
repetitions: 3
guarantee: true
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: monitor, type: II, kind: pktstat}
  - {name: proxy, type: V, kind: nginx_proxy}
"""
OUTAGE = """\
name: three
instances: 3
nf_kinds: [linux_router]
frame: 64B
rate_pps: 20000
repetitions: 5
before_s: 0.3
after_s: 0.4
events:
  - {event: kill, target: nf-1-1}
  - {event: pause, target: nf-2-1, hold_s: 0.1}
  - {event: restart, target: instance-3}
  - {event: restart, target: vswitch}
"""
STATEFUL = """\
name: many
kind: linux_nat
size: 0.5c
instances: [1, 2, 3, 4]
nodes: [1, 2, 3]
frame: 64B
search: quick,width=0.5,trial=0.01,sum=0.01
tear_downs: 1
connections: 100
capacity: false
"""


@dataclass(frozen=True)
class Study:
    """A suite with one test, and the journal of that test."""

    suite: Path
    options: tuple[str, ...]
    journal: str
    """Below the folder of a run."""
    kills: int = 3
    ahead: int = 1
    """Lines of the journal before its first step: the heading, and the load of all steps where it is a line."""

    def path(self, folder: Path) -> Path:
        """Of the journal in a run."""
        return folder / "characterization" / self.journal

    def lines(self, folder: Path) -> int:
        """How many the journal has, torn ones included."""
        path = self.path(folder)
        return path.read_bytes().count(b"\n") if path.exists() else 0


def suite_of(name: str, specification: str, text: str, folder: Path) -> Path:
    """A suite of the project with a specification of the test's own."""
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    suite = folder / f"{name}.robot"
    robot = (SUITES / suite.name).read_text(encoding="utf-8")
    suite.write_text(robot.replace(specification, f"{folder}/spec.yaml"), encoding="utf-8")
    return suite


def chains(folder: Path) -> Study:
    """All pairs of five network functions: 34 chains, each deployed for one session and for 16.

    Killed most often, for all studies that keep a journal of steps: how they resume is shared.
    """
    suite = suite_of("chains", "chains/four-vnfs.yaml", CHAINS, folder)
    return Study(suite, (), "Four_Network_Functions_With_A_Planted_Fault/chains.jsonl", 10)


def interference(folder: Path) -> Study:
    """Three network functions in pairs, with and without a guarantee: 36 measurements."""
    suite = suite_of("interference", "interference/pairs.yaml", INTERFERENCE, folder)
    return Study(suite, ("-i", "PAIRS"), "Network_Functions_Side_By_Side/interference.jsonl", ahead=2)


def outage(folder: Path) -> Study:
    """Four events and a control in 5 repetitions: 25 trials."""
    suite = suite_of("outage", "outage/routers.yaml", OUTAGE, folder)
    return Study(suite, ("-i", "ROUTERS"), "Routers/outage.jsonl", ahead=2)


def stateful(folder: Path) -> Study:
    """12 cells."""
    suite = suite_of("stateful", "stateful/nat.yaml", STATEFUL, folder)
    return Study(suite, ("-i", "NAT"), "NAT/stateful.jsonl")


def dataset(folder: Path) -> list[tuple[str, str, str]]:
    """Status, message and record of all tests, byte by byte but for wall-clock times."""
    found = items(folder / "output.xml")
    assert all(isinstance(item, Recorded) for item in found)
    return [
        (item.status.value, item.message, TIMES.sub("", item.record.model_dump_json()))
        for item in found
        if isinstance(item, Recorded)
    ]


def files(folder: Path) -> dict[str, str]:
    """Records and tables of a run by name."""
    found = (*(folder / "results").iterdir(), *folder.glob("characterization/*/*.csv"))
    return {file.name: TIMES.sub("", file.read_text(encoding="utf-8")) for file in found}


def tear(journal: Path, chance: random.Random) -> None:
    """Leave a part of the last line, as a power cut in the middle of its writing does; not of the first two steps."""
    text = journal.read_bytes()
    begin = text.rstrip(b"\n").rfind(b"\n") + 1
    if text.count(b"\n", 0, begin) > 2:
        journal.write_bytes(text[: chance.randrange(begin, len(text))])


@pytest.mark.parametrize("study_in", [chains, interference, outage, stateful])
def test_a_study_killed_at_random_moments_and_resumed_gives_the_same_dataset(
    tmp_path: Path, study_in: Callable[[Path], Study]
) -> None:
    seed = time.time_ns()
    chance = random.Random(seed)
    study, whole, folder = study_in(tmp_path), tmp_path / "whole", tmp_path / "killed"
    options = (*SIM, *study.options)
    run_robot(whole, *options, sources=[study.suite])
    steps = study.lines(whole) - study.ahead
    header = folder / "journal.jsonl"
    kills, most = 0, 0
    for number in range(study.kills):
        resume = ("-v", f"RESUME:{folder}") if header.exists() and b"\n" in header.read_bytes() else ()
        # So many steps later, and then some: in a deployment, between two, in the middle of a line.
        # The first run is killed anywhere, before it has a journal included; each later one adds a step or more.
        # A quarter of the way in all, on average. A run that this process is too late for stands still two steps later.
        more = chance.randrange(max(1, steps // (2 * study.kills))) if number else steps // 4
        target = max(study.lines(folder), study.ahead) + 1 + more if number else 0
        late = Paused(tmp_path, [Moment(KEEPING, call=more + 3)])
        with PreloadedRun(
            argv(folder, *options, *resume, *late.options, sources=[study.suite]), cwd=PROJECT, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as run:  # fmt: skip
            while study.lines(folder) < target and run.poll() is None:
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.01 if target else 0.5))
            run.send_signal(signal.SIGKILL)
        kills += run.returncode == -signal.SIGKILL
        most = max(most, study.lines(folder))
        if number % 2:
            tear(study.path(folder), chance)
    assert kills == study.kills, f"seed {seed}: the study ended before it was killed {study.kills} times"
    assert study.ahead < most < study.ahead + steps, f"seed {seed}"
    done = run_robot(folder, *options, "-v", f"RESUME:{folder}", sources=[study.suite], check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert "before the run was resumed" in done.stdout, f"seed {seed}"
    assert dataset(folder) == dataset(whole), f"seed {seed}"
    assert files(folder) == files(whole), f"seed {seed}"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of interference that came to its end, started as its users do."""
    study = interference(place := tmp_path_factory.mktemp("ended"))
    folder = place / "run"
    done = csit("robot", "-d", str(folder), *SIM, *study.options, str(study.suite))
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_study_with_other_settings_begins_anew_and_says_so(ended: Path) -> None:
    study, once = interference(ended.parent), INTERFERENCE.replace("repetitions: 3", "repetitions: 1")
    suite = suite_of("interference", "interference/pairs.yaml", once, ended.parent)
    done = run_robot(ended, *SIM, *study.options, "-v", f"RESUME:{ended}", sources=[suite])
    sentence = "interference.jsonl has no interference study with these settings: all steps are measured"
    assert sentence in done.stdout + done.stderr
    rows = [json.loads(line) for line in study.path(ended).read_text(encoding="utf-8").splitlines()]
    measurements = [row["row"] for row in rows if row.get("line") == "step"]
    again = measurements[-3 * (1 + 3 + 3) :]  # alone; beside each, without and with a guarantee
    assert {row["repetition"] for row in again} == {0}
    (item,) = items(ended / "output.xml")
    assert isinstance(item, Recorded)
    assert item.record.interference is not None
    found = item.record.interference.measurements
    assert [measurement.model_dump(mode="json") for measurement in found] == again
