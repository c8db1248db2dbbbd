"""Runs that are cut short and resumed end with what an uninterrupted run gives; other choices are refused."""

import fcntl
import json
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration.pauses import BETWEEN, KEEPING, Moment, Paused
from tests.integration.preloaded import PreloadedRun
from tests.integration.robot_runs import (
    DENSITY,
    PROJECT,
    SIM,
    argv,
    csit,
    environment,
    events,
    run_robot,
    study_record,
    study_suite,
)
from tests.loaded import contents, without_moment

pytestmark = pytest.mark.parallel

MATRIX = (*SIM, "-v", "NF_SIZES:1c", "-v", "CELLS:1-3x1-2")
"""6 cells, by service type and test type."""
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
"""All pairs of five network functions: 34 chains, each deployed for one session and for 16."""
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


def files(output: Path) -> dict[str, object]:
    """Records and tables of a run by name."""
    tables = {file.name: file.read_bytes() for file in output.glob("characterization/*/*.csv")}
    return tables | {file.name: without_moment(file.read_text("utf-8")) for file in (output / "results").iterdir()}


def finished(output: Path) -> int:
    return sum(each["event"] == "finished" for each in events(output)) if output.exists() else 0


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def tear(journal: Path, chance: random.Random) -> None:
    """Leave a part of the last line, as a power cut in the middle of its writing does; not of the first two steps."""
    text = journal.read_bytes() if journal.exists() else b""
    begin = text.rstrip(b"\n").rfind(b"\n") + 1
    if text.count(b"\n", 0, begin) > 2:
        journal.write_bytes(text[: chance.randrange(begin, len(text))])


@dataclass(frozen=True)
class Interrupted:
    """A run that is killed; of one test, whose steps are in a journal of its own, if it has a specification."""

    journal: str
    kills: int
    """How often, at random moments."""
    ahead: int = 1
    """Lines of the journal before its first step: the heading, and the load of all steps where it is a line."""
    options: tuple[str, ...] = ()
    specification: str = ""
    """What of the study's suite is replaced by the specification with this text."""
    text: str = ""

    def source(self, folder: Path) -> Path:
        return study_suite(folder, self.specification, self.text) if self.specification else DENSITY


FOUR = "characterization/Four_Network_Functions_With_A_Planted_Fault/chains.jsonl"
PAIRS = "characterization/Network_Functions_Side_By_Side/interference.jsonl"
RUNS: Mapping[str, Interrupted] = {
    "matrix": Interrupted("journal.jsonl", 5, options=MATRIX),
    "chains": Interrupted(FOUR, 10, 1, SIM, "chains/four-vnfs.yaml", CHAINS),
    "interference": Interrupted(PAIRS, 3, 2, (*SIM, "-i", "PAIRS"), "interference/pairs.yaml", INTERFERENCE),
    "outage": Interrupted(
        "characterization/Routers/outage.jsonl", 3, 2, (*SIM, "-i", "ROUTERS"), "outage/routers.yaml", OUTAGE
    ),
    "stateful": Interrupted(
        "characterization/NAT/stateful.jsonl", 3, 1, (*SIM, "-i", "NAT"), "stateful/nat.yaml", STATEFUL
    ),
}
"""Chains are killed most often, for all studies that keep a journal of steps: how they resume is shared."""


@pytest.mark.parametrize("name", RUNS)
def test_a_run_killed_at_random_and_resumed_gives_the_same_dataset(tmp_path: Path, name: str) -> None:
    seed = time.time_ns()
    run, chance, whole, folder = RUNS[name], random.Random(seed), tmp_path / "whole", tmp_path / "killed"
    of_steps, sources, journal = bool(run.specification), [run.source(tmp_path)], folder / run.journal
    run_robot(whole, *run.options, sources=sources)
    steps = lines(whole / run.journal) - run.ahead
    spread = max(1, steps // (2 * run.kills if of_steps else run.kills))
    killed, most = 0, 0
    for number in range(run.kills):
        resume = ("-v", f"RESUME:{folder}") if lines(folder / "journal.jsonl") else ()
        # So many journal lines later, and then some: in a test, between two, in the middle of a line. The first run is
        # killed anywhere, before it has a journal included; each later one adds a step or more.
        more = chance.randrange(spread) if number else steps // 4
        target = max(lines(journal), run.ahead) + 1 + more if number else 0
        # A run that this process is too late for stands still two steps later.
        late = Paused(tmp_path, [Moment(KEEPING if of_steps else BETWEEN, call=more + 3)])
        with PreloadedRun(
            argv(folder, *run.options, *resume, *late.options, sources=sources), cwd=PROJECT, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            while lines(journal) < target and process.poll() is None:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.02 if target else 0.5))
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
        most = max(most, lines(journal))
        if number % 2 and of_steps:
            tear(journal, chance)
    assert killed == run.kills, f"seed {seed}: the run ended before it was killed {run.kills} times"
    assert run.ahead < most < run.ahead + steps, f"seed {seed}"
    assert of_steps or 0 < finished(folder) < finished(whole), f"seed {seed}"
    done = run_robot(folder, *run.options, "-v", f"RESUME:{folder}", sources=sources, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert not of_steps or "before the run was resumed" in done.stdout, f"seed {seed}"
    assert finished(folder) == finished(whole), f"seed {seed}: nothing is measured twice"
    assert contents(folder) == contents(whole), f"seed {seed}"
    assert files(folder) == files(whole), f"seed {seed}"


def test_a_study_with_other_settings_begins_anew_and_says_so(tmp_path: Path) -> None:
    study, folder = RUNS["interference"], tmp_path / "run"
    done = csit("robot", "-d", str(folder), *study.options, str(study.source(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    once = replace(study, text=INTERFERENCE.replace("repetitions: 3", "repetitions: 1"))
    done = run_robot(folder, *study.options, "-v", f"RESUME:{folder}", sources=[once.source(tmp_path)])
    sentence = "interference.jsonl has no interference study with these settings: all steps are measured"
    assert sentence in done.stdout + done.stderr
    rows = [json.loads(line) for line in (folder / study.journal).read_text(encoding="utf-8").splitlines()]
    measurements = [row["row"] for row in rows if row.get("line") == "step"]
    again = measurements[-3 * (1 + 3 + 3) :]  # alone; beside each, without and with a guarantee
    assert {row["repetition"] for row in again} == {0}
    found = study_record(folder).interference.measurements
    assert [measurement.model_dump(mode="json") for measurement in found] == again


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, started as its users do."""
    output = tmp_path_factory.mktemp("small") / "run"
    options = ("-v", "CELLS:1-2x1", "-v", "NF_SIZES:1c", "--suite", "csc-mrr", "--suite", "csp-mrr", str(DENSITY))
    done = csit("robot", "-d", str(output), *SIM, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return output


@pytest.fixture
def torn(tmp_path: Path, small: Path) -> Path:
    """The small run as if its machine had lost power while the journal's third result was written."""
    folder = tmp_path / "run"
    shutil.copytree(small, folder)
    journal = (folder / "journal.jsonl").read_bytes()
    third = [match.start() for match in re.finditer(rb'"event":"finished"', journal)][2]
    (folder / "journal.jsonl").write_bytes(journal[: third + 5])
    (folder / "output.xml").write_text("<robot><suite", encoding="utf-8")
    return folder


def test_a_failed_test_is_carried_over_as_failed(tmp_path: Path) -> None:
    topology = tmp_path / "broken.yaml"
    text = (PROJECT / "topologies" / "sim.yaml").read_text(encoding="utf-8")
    topology.write_text(text.replace("  seed: 1\n", "  seed: 1\n  drop_at: [nf-1-1]\n"), encoding="utf-8")
    options = ("-v", f"TOPOLOGY:{topology}", "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "--suite", "csc-mrr")
    output = tmp_path / "run"
    first = run_robot(output, *options, check=False)
    assert first.returncode == 1
    told = contents(output)
    assert "no traffic" in told[0][1]
    second = run_robot(output, *options, "-v", f"RESUME:{output}", check=False)
    assert second.returncode == 1
    assert contents(output) == told
    assert [each["event"] for each in events(output)].count("started") == 1  # no result is tried again


def test_plain_robot_resumes_a_run_in_its_own_folder(torn: Path, small: Path) -> None:
    options = ("--suite", "csc-mrr", "--suite", "csp-mrr", "-v", f"RESUME:{torn}")
    elsewhere = run_robot(torn.parent / "elsewhere", *options, check=False)
    assert f"a run is resumed in its own folder; use -d {torn}" in elsewhere.stdout
    run_robot(torn, *options)
    assert contents(torn) == contents(small)


def test_a_folder_of_an_active_run_is_refused_and_the_run_resumes(torn: Path, small: Path) -> None:
    """Its files stay as they are; Robot's own command overwrites its output.xml, which the resumed run restores."""
    before = {file: file.read_bytes() for file in torn.rglob("*") if file.is_file()}
    options = (*SIM, "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "--suite", "csc-mrr")
    with (torn / "journal.jsonl").open("rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        for words in (("--resume", str(torn)), ("-d", str(torn), *options, str(DENSITY))):
            refused = csit("robot", *words)
            assert refused.returncode == 1
            assert re.fullmatch(r".*/journal\.jsonl: the run of this journal is still active: .*\n", refused.stderr)
        assert {file: file.read_bytes() for file in torn.rglob("*") if file.is_file()} == before
        plain = run_robot(torn, *options, check=False)
        assert "choose another folder (-d), or resume it when it has ended" in " ".join(plain.stdout.split())
        assert plain.returncode != 0
        assert {file for file in torn.rglob("*") if file.is_file()} == before.keys()
    assert csit("robot", "--resume", str(torn)).returncode == 0
    assert contents(torn) == contents(small)


def test_a_new_run_in_a_used_folder_keeps_the_earlier_journal(tmp_path: Path) -> None:
    options = (*SIM, "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "--suite", "csc-mrr")
    run_robot(tmp_path, *options)
    earlier = (tmp_path / "journal.jsonl").read_bytes()
    done = run_robot(tmp_path, *options)
    assert (tmp_path / "journal-1.jsonl").read_bytes() == earlier
    assert finished(tmp_path) == 1
    assert "is kept as journal-1.jsonl" in done.stderr


def test_the_laptops_command_resumes_and_writes_its_report(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ("--topology", "topologies/sim.yaml", "--types", "CSP", "--cells", "1x1,2x1", "--output", str(folder))
    first = csit("local", *options)
    assert first.returncode == 0, first.stdout + first.stderr
    whole, told = contents(folder), first.stdout.splitlines()
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))  # up to the second test's start
    (folder / "output.xml").unlink()
    (folder / "density.html").unlink()
    second = csit("local", "--resume", str(folder))
    assert second.returncode == 0, second.stdout + second.stderr
    assert contents(folder) == whole
    assert (folder / "density.html").exists()
    assert second.stdout.splitlines()[-5:] == told[-5:]
    assert [each["event"] for each in events(folder)][3:] == ["started", "resumed", "started", "finished", "ended"]


def test_suite_files_of_one_call_are_one_run_that_is_resumed_as_one(tmp_path: Path) -> None:
    sources = [DENSITY / "csc-mrr.robot", DENSITY / "csp-mrr.robot"]
    options = (*SIM, "-v", "CELLS:1-2x1", "-v", "NF_SIZES:1c")
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    run_robot(whole, *options, sources=sources)
    kinds = [each["event"] for each in events(whole)]
    assert (kinds.count("run"), kinds.count("finished")) == (1, 4)
    assert [path.name for path in whole.glob("journal*")] == ["journal.jsonl"]
    # As if the machine had lost power in the second file.
    shutil.copytree(whole, torn)
    journal = (torn / "journal.jsonl").read_bytes()
    last = journal.rindex(b'"event":"finished"')
    (torn / "journal.jsonl").write_bytes(journal[: last + 5])
    run_robot(torn, *options, "-v", f"RESUME:{torn}", sources=sources)
    assert finished(torn) == 4  # the fourth is measured again, nothing else
    assert contents(torn) == contents(whole)
