"""Runs Robot the way a user does, and looks at what is on the machine before and after."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, product
from pathlib import Path
from typing import IO, Any

import pytest

from resources.libraries.python.drivers.host.links.namespaces import run_inside
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Direction
from resources.libraries.python.studies.density.model import DensityRecord
from tests.integration.machine_watch import entries
from tests.integration.preloaded import PreloadedRun
from tests.loaded import load

PROJECT = Path(__file__).parents[2]
DENSITY = PROJECT / "tests" / "density"
SUITES = PROJECT / "tests" / "characterization"
SPECS = SUITES / "specs"
LOCAL, SIM = (("-v", f"TOPOLOGY:topologies/{name}.yaml") for name in ("local", "sim"))


def argv(output: Path, *options: str, sources: Sequence[Path] = (DENSITY,)) -> list[str]:
    """The command line of a Robot run with its results in `output`, without Robot's own pages unless they are asked."""
    pages = ("--log", "NONE", "--report", "NONE")
    return [sys.executable, "-m", "robot", "--outputdir", str(output), *pages, *options, *map(str, sources)]


def variables(*values: str) -> tuple[str, ...]:
    """Options of Robot that set variables, each as `NAME:value`, several of them with spaces between."""
    return tuple(word for value in " ".join(values).split() for word in ("-v", value))


def study_suite(folder: Path, specification: str, content: str, study: str = "") -> Path:
    """Write a copy of a study's suite in which one specification is another, and need not have its planted fault."""
    group = specification.split("/", maxsplit=1)[0]
    chosen, suite = folder / "small.yaml", folder / f"{study or group}.robot"
    chosen.write_text(content, encoding="utf-8")
    text = (SUITES / suite.name).read_text(encoding="utf-8").replace(f"{group}/", f"{SPECS}/{group}/")
    assert f"{SPECS}/{specification}" in text
    text = text.replace(f"{SPECS}/{specification}", str(chosen))
    template = "[Template]    {}"
    suite.write_text(
        text.replace(template.format("Planted Fault Should Be Found"), template.format("Run Study")), encoding="utf-8"
    )
    return suite


def small_suite(folder: Path, study: str, spec: str, then: str = "No Operation") -> Path:
    """Write a suite whose one test `Small` runs a study, and then another keyword."""
    (folder / "small.yaml").write_text(spec, encoding="utf-8")
    suite = folder / "small.robot"
    suite.write_text(_SUITE.format(study=study, spec=folder / "small.yaml", then=then), encoding="utf-8")
    return suite


def run_robot(
    output: Path, *options: str, sources: Sequence[Path] = (DENSITY,), seconds: float = 900, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Robot and wait for it; `check` says that no test may fail."""
    done = _completed(argv(output, *options, sources=sources), environment(), seconds)
    assert not (check and done.returncode), done.stdout + done.stderr
    return done


def _completed(
    argv: list[str], variables: dict[str, str], seconds: float, output: int | IO[bytes] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    with PreloadedRun(argv, cwd=PROJECT, env=variables, stdout=output, stderr=subprocess.PIPE, text=True) as run:
        try:
            stdout, stderr = run.communicate(timeout=seconds)
        except BaseException:  # boundary: as `subprocess.run` does
            run.kill()
            raise
    return subprocess.CompletedProcess(argv, run.returncode, stdout, stderr)


@contextmanager
def going_on(output: Path, *options: str, sources: Sequence[Path] = (DENSITY,)) -> Iterator["subprocess.Popen[str]"]:
    """A run that goes on beside the test; what it says is kept. It is ended where the test has not done that."""
    with PreloadedRun(
        argv(output, *options, sources=sources), cwd=PROJECT, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        try:
            yield run
        finally:
            if run.poll() is None:
                run.terminate()
                try:
                    run.communicate(timeout=120)
                except subprocess.TimeoutExpired:
                    run.kill()
                    run.communicate()


def environment() -> dict[str, str]:
    """As a user has it, with the project on Python's path."""
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def csit(
    *words: str, token: str = "", output: int | IO[bytes] = subprocess.PIPE, seconds: float = 900
) -> subprocess.CompletedProcess[str]:
    """Run a command of the project to its end."""
    variables = environment() | ({"CSIT_RESERVATION": token} if token else {})
    return _completed([sys.executable, "-m", "csit_utils", *words], variables, seconds, output)


@contextmanager
def csit_going_on(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """A command of the project, which is killed if it still runs afterwards."""
    with subprocess.Popen(
        [sys.executable, "-m", "csit_utils", *words],
        cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        try:
            yield run
        finally:
            run.kill()


def results(output: Path) -> list[DensityRecord]:
    """Records that a run wrote, in order, those of tests that were cut short included."""
    names = [row["record"] for row in events(output) if row.get("record")]
    return [DensityRecord.model_validate_json((output / "results" / name).read_bytes()) for name in names]


def broke_once(output: Path, words: Mapping[str, str]) -> None:
    """See that the test of each frame size passed after it broke once for a reason with its words; clean where none.

    At a low rate packets of every instance arrive in both directions; in overload it is the machine that decides.
    """
    rows = {row.asked.frame.name: row for row in results(output)}
    assert list(rows) == list(words)
    for name, wanted in words.items():
        row = rows[name]
        assert len(row.broken) == bool(wanted) and all(wanted in reason for reason in row.broken), (name, row.broken)
        assert row.passed and row.mrr and row.mrr.mean_pps > 0, (name, row.verdict)
        *_, last = (each for each in row.trials if each.trial.purpose == "connectivity")
        arrived = {(flow.instance, flow.direction) for flow in last.flows if flow.received}
        assert arrived == set(product(range(1, row.cell.nf_chains + 1), Direction)), (name, last.flows)


def events(output: Path) -> list[dict[str, Any]]:
    """Lines of a run's journal that are complete."""
    journal = output / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}\n")]


def network_state() -> dict[str, set[str]]:
    """Namespaces, links of the root namespace, NAPI kernel threads, generator workers and guests on this machine.

    Without what belongs to labs, to checks of this machine and to other runs of tests, which may be beside this one.
    """
    folder, here = Path("/run/netns"), Path("/proc/self/ns/uts").readlink()
    mounts = (line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines())
    return {
        "namespaces": {entry.name for entry in folder.iterdir()} if folder.is_dir() else set(),
        "links": {name for name in os.listdir("/sys/class/net") if not name.startswith("csl")},  # noqa: PTH208 (names)
        "threads": {name for name in _names(Path("/proc").glob("[0-9]*")) if re.match(r"napi/cs(?!t\d)", name)},
        "workers": {" ".join(words) for entry, words in entries(_is_worker) if _link(entry / "ns" / "uts") == here},
        "mounts": {place for place in mounts if "csit" in place and not place.startswith("/run/csit-lab/")},
    }


def _names(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        with suppress(FileNotFoundError, ProcessLookupError):
            yield (folder / "comm").read_text(encoding="utf-8").strip()


def _link(place: Path) -> Path | None:
    """Where it leads to; None where a process has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return place.readlink()
    return None


def wait_for_network_state(before: dict[str, set[str]], seconds: float = 30) -> None:
    """Wait until the machine is as it was: the kernel ends threads and links of a namespace in its own time."""
    wait_until("machine as it was", lambda: _difference(before, network_state()), seconds)


def _difference(before: dict[str, set[str]], now: dict[str, set[str]]) -> str:
    return "; ".join(
        f"{kind}: new {sorted(now[kind] - before[kind])}, gone {sorted(before[kind] - now[kind])}"
        for kind in before
        if now[kind] != before[kind]
    )


def _is_worker(words: list[str]) -> bool:
    own = words[0] == sys.executable and any("drivers.generator" in word for word in words)
    return own or words[0].startswith("qemu-system")


@contextmanager
def held_in_a_trial(
    run: "subprocess.Popen[str]", output: Path, test: str, *, attempt: int = 1, sent: Callable[[], int] | None = None,
    at_least: int = 1, seconds: float = 180,
) -> Iterator[None]:  # fmt: skip
    """Let a run stand still in the middle of a trial: its generator sends, and the run goes no further meanwhile.

    So what is done to the system under test comes in that trial, however slow this machine is, and no trial need be
    long for it.
    """
    count = sent or sent_packets

    def other_test() -> str:
        begun: dict[str, Any] = next((row for row in reversed(events(output)) if row["event"] != "resumed"), {})
        right = begun.get("event") == "started" and begun["test"].startswith(test) and begun["attempt"] == attempt
        return "" if right else f"its journal ends with {begun.get('event')} {begun.get('test')}"

    def not_in_it() -> str:
        if run.poll() is not None:
            pytest.fail(f"the run has ended: {run.communicate()[0]}")
        if text := other_test():
            return text
        if not count():
            return "nothing is sent"
        held = False
        run.send_signal(signal.SIGSTOP)
        try:
            held = _sends(count, at_least) and not other_test()
        finally:
            if not held:
                run.send_signal(signal.SIGCONT)
        return "" if held else "no trial"

    with _before_data_threads():
        wait_until(f"trial of {test}, attempt {attempt}", not_in_it, seconds, pause_s=0.02)
    try:
        yield
    finally:
        run.send_signal(signal.SIGCONT)


def _sends(count: Callable[[], int], at_least: int) -> bool:
    """Whether so many packets are sent without a pause, however slowly: a generator may wait for its CPU, too."""
    before = last = count()
    while last < before + at_least:
        time.sleep(0.05)
        if (now := count()) == last:
            return False
        last = now
    return True


@contextmanager
def _before_data_threads() -> Iterator[None]:
    """This thread goes before those that forward, which else leave it nothing of a small machine during a trial."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(os.SCHED_FIFO)))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def wait_for_traffic(seconds: float = 120) -> None:
    """Wait until the generator of a run sends."""

    def missing() -> str:
        before = sent_packets()
        time.sleep(0.05)
        return "" if sent_packets() > before > 0 else "no traffic"

    with _before_data_threads():
        wait_until("traffic", missing, seconds, pause_s=0.02)


def sent_packets(namespace: str = "csit-generator") -> int:
    """Packets that the generator's first port has sent; 0 where there is none."""
    try:
        shown = run_inside(namespace, Path("/proc/thread-self/net/dev").read_text)
    except CsitError:
        return 0
    for line in shown.splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "csg1p1":
            return int(numbers.split()[8])
    return 0


def study_record(output: Path) -> Any:
    """The record of the only test of a run, of another study than density."""
    (item,) = load([output / "output.xml"]).characterizations
    return item.record


_SUITE = """
*** Settings ***
Library           resources.libraries.python.studies.shared.StudyLibrary    {study}
Suite Setup       Open Testbed
Suite Teardown    Close Testbed
Test Teardown     Close Test    ${{TEST STATUS}}    ${{TEST MESSAGE}}

*** Test Cases ***
Small
    Run Study    {spec}
    {then}
"""


def reasons_to_repeat(output: Path) -> list[str]:
    """Why tests and steps of a study were measured once more, by the records of a run."""
    rows = load([output / "output.xml"]).characterizations
    steps = [re.findall(r'measured once more: ([^"]+)', row.record.model_dump_json()) for row in rows]
    return [*chain(*steps), *chain(*(getattr(row.record, "broken", ()) for row in rows))]
