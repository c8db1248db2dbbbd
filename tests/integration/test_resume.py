"""Runs that are cut short and resumed end with what an uninterrupted run gives; other choices are refused."""

import fcntl
import random
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from csit_utils.dataset.items import Recorded
from tests.integration.pauses import BETWEEN, KEEPING, Moment, Paused
from tests.integration.preloaded import PreloadedRun
from tests.integration.robot_runs import (
    DENSITY,
    ELSEWHERE,
    PROJECT,
    SIM,
    argv,
    csit,
    environment,
    events,
    run_robot,
    study_suite,
)
from tests.loaded import items

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
TIMES = re.compile(r'"(?:started_at|finished_at|deploy_s|remove_s)":(?:"[^"]*"|[\d.e-]+|null)|' + ELSEWHERE)


def dataset(output: Path) -> list[tuple[str, ...]]:
    """Everything in an output.xml in order.

    Of tests: status, message and record, byte by byte but for wall-clock times.
    """
    return [
        (item.status.value, item.message, TIMES.sub("", item.record.model_dump_json()))
        if isinstance(item, Recorded)
        else (str(replace(item, source="")),)
        for item in items(output / "output.xml")
    ]


def files(output: Path) -> dict[str, str]:
    """Records and tables of a run by name."""
    found = (*(output / "results").iterdir(), *output.glob("characterization/*/*.csv"))
    return {file.name: TIMES.sub("", file.read_text(encoding="utf-8")) for file in found}


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


@pytest.mark.parametrize(
    ("journal", "kills"),
    [("journal.jsonl", 5), ("characterization/Four_Network_Functions_With_A_Planted_Fault/chains.jsonl", 10)],
    ids=["matrix", "study"],
)
def test_a_run_killed_at_random_and_resumed_gives_the_same_dataset(tmp_path: Path, journal: str, kills: int) -> None:
    """Of a matrix, and of a study for all that keep a journal of steps: how they resume is shared."""
    seed = time.time_ns()
    chance, whole, folder = random.Random(seed), tmp_path / "whole", tmp_path / "killed"
    is_matrix = journal == "journal.jsonl"
    sources = [DENSITY if is_matrix else study_suite(tmp_path, "chains/four-vnfs.yaml", CHAINS)]
    options = MATRIX if is_matrix else SIM
    run_robot(whole, *options, sources=sources)
    steps = lines(whole / journal)
    killed = 0
    for number in range(kills):
        header = folder / "journal.jsonl"
        resume = ("-v", f"RESUME:{folder}") if lines(header) else ()
        # So many journal lines later, and then some: in a test, between two, in the middle of a line. The first run is
        # killed anywhere, before it has a journal included. A quarter of the way in all, on average.
        more = 1 + chance.randrange(max(1, steps // (2 * kills)))
        target = max(lines(folder / journal), 1) + more if number else 0
        # A run that this process is too late for stands still soon afterwards.
        late = Paused(tmp_path, [Moment(BETWEEN if is_matrix else KEEPING, call=more + 2)])
        with PreloadedRun(
            argv(folder, *options, *resume, *late.options, sources=sources), cwd=PROJECT, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as run:  # fmt: skip
            while lines(folder / journal) < target and run.poll() is None:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.02 if target else 0.5))
            run.send_signal(signal.SIGKILL)
        killed += run.returncode == -signal.SIGKILL
        if number % 2 and not is_matrix:
            tear(folder / journal, chance)
    assert killed == kills and 0 < lines(folder / journal) < steps, f"seed {seed}"
    run_robot(folder, *options, "-v", f"RESUME:{folder}", sources=sources)
    assert finished(folder) == finished(whole), f"seed {seed}: nothing is measured twice"
    assert dataset(folder) == dataset(whole) and files(folder) == files(whole), f"seed {seed}"


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
    told = dataset(output)
    assert "no traffic" in told[0][1]
    second = run_robot(output, *options, "-v", f"RESUME:{output}", check=False)
    assert second.returncode == 1
    assert dataset(output) == told
    assert [each["event"] for each in events(output)].count("started") == 1  # no result is tried again


def test_plain_robot_resumes_a_run_in_its_own_folder(torn: Path, small: Path) -> None:
    options = ("--suite", "csc-mrr", "--suite", "csp-mrr", "-v", f"RESUME:{torn}")
    elsewhere = run_robot(torn.parent / "elsewhere", *options, check=False)
    assert f"a run is resumed in its own folder; use -d {torn}" in elsewhere.stdout
    run_robot(torn, *options)
    assert dataset(torn) == dataset(small)


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
    assert dataset(torn) == dataset(small)


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
    whole, told = dataset(folder), first.stdout.splitlines()
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))  # up to the second test's start
    (folder / "output.xml").unlink()
    (folder / "density.html").unlink()
    second = csit("local", "--resume", str(folder))
    assert second.returncode == 0, second.stdout + second.stderr
    assert dataset(folder) == whole
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
    assert dataset(torn) == dataset(whole)
