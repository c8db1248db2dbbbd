"""Every study on the simulated testbed: what ends a run at a chosen moment loses nothing, and it resumes equal."""

import json
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from csit_utils.dataset.items import Recorded
from resources.libraries.python.studies.sizing.run import SizeTrials
from tests.integration.disks import filled, small_disk
from tests.integration.pauses import BETWEEN, DEPLOYED, KEEPING, REMOVING, SENDING, WRITING, Moment, Paused, call_of
from tests.integration.robot_runs import DENSITY, SIM, SUITES, csit, going_on, run_robot, study_suite
from tests.loaded import items

pytestmark = [pytest.mark.parallel, pytest.mark.root]

OF_A_RUN = {
    "started_at",
    "finished_at",
    "deploy_s",
    "remove_s",
    "settings",
    "git_revision",
    "git_dirty",
    "carried_over",
}
"""Keys of records that tell when and how a test was run. Other programs of the machine change its settings, and git is
given a second."""
RESUMED = re.compile(r'"\d+ loads were measured before the run was resumed[^"]*"')
CHAINS = """\
name: two
vnfs:
  - {name: gateway, kind: linux_gateway}
  - {name: router, kind: linux_router}
lengths: [1, 2]
workloads: {volumes_mbps: [2], sessions: [1], frames: [64B]}
duration_s: 1
"""
INTERFERENCE = """\
name: two
frame: 512B
duration_s: 0.4
repetitions: 4
contenders:
  - {name: gateway, type: I, kind: linux_gateway}
  - {name: proxy, type: V, kind: nginx_proxy}
"""
OUTAGE = """\
name: two
instances: 2
nf_kinds: [linux_router]
frame: 64B
rate_pps: 20000
repetitions: 3
before_s: 0.3
after_s: 0.4
events:
  - {event: kill, target: nf-1-1}
  - {event: restart, target: vswitch}
"""
STATEFUL = """\
name: four
kind: linux_nat
instances: [1, 2]
nodes: [1, 2]
frame: 64B
search: quick,width=0.5,trial=0.1,sum=0.1
tear_downs: 1
connections: 500
capacity: false
"""


@dataclass(frozen=True)
class Study:
    """A small run of a study."""

    suite: str
    options: tuple[str, ...]
    writing: Moment
    """A result is about to be written, and it is not the first one."""
    sending: Moment
    """Of a later step."""
    spec: tuple[str, str] = ("", "")
    """What of the suite is replaced by the specification with this text."""

    def source(self, folder: Path) -> Path:
        """The suite, with a specification of the test's own."""
        if not self.spec[0]:
            return (DENSITY if self.suite.startswith("csc") else SUITES) / self.suite
        return study_suite(folder, *self.spec, study=self.suite.removesuffix(".robot"))


WORKLOAD = {
    "range": {"min": 200, "max": 1000}, "increase": 200, "repeat": 1, "stop": {"below": 0.8, "loads": 1},
    "generator": f"{SUITES}/specs/clearwater/reg-dereg.sh", "duration_s": 10, "threshold": 0.9, "unit": "calls/s",
}  # fmt: skip
OFFERING = call_of(SizeTrials.offer)
STUDIES: Mapping[str, Study] = {
    "density": Study(
        "csc-mrr.robot",
        ("-v", "CELLS:1-4x1", "-v", "NF_SIZES:1c"),
        Moment(WRITING, "CSC 2R1C"),
        Moment(SENDING, "CSC 4R1C"),
    ),
    "sweep": Study(
        "chain.robot",
        ("-t", "Path Alone", "-v", "SWEEP_RATES:3000-60000/3000"),
        Moment(KEEPING, call=5),
        Moment(SENDING, call=12),
    ),
    "sizing": Study(
        "sizing.robot",
        ("-t", "Clearwater"),
        Moment(KEEPING, call=2),
        Moment(OFFERING, call=2),
        ("clearwater/workload.json", json.dumps(WORKLOAD)),
    ),
    "chains": Study(
        "chains.robot", (), Moment(KEEPING, call=2), Moment(SENDING, call=3), ("chains/four-vnfs.yaml", CHAINS)
    ),
    "interference": Study(
        "interference.robot",
        ("-i", "PAIRS"),
        Moment(KEEPING, call=2),
        Moment(SENDING, call=9),
        ("interference/pairs.yaml", INTERFERENCE),
    ),
    "outage": Study(
        "outage.robot",
        ("-i", "ROUTERS"),
        Moment(KEEPING, call=3),
        Moment(SENDING, call=4),
        ("outage/routers.yaml", OUTAGE),
    ),
    "stateful": Study(
        "stateful.robot",
        ("-i", "NAT"),
        Moment(KEEPING, call=2),
        Moment(SENDING, call=9),
        ("stateful/nat.yaml", STATEFUL),
    ),
}


def dataset(output: Path) -> list[Any]:
    """Status, message and record of all tests."""
    found: list[Any] = []
    for item in items(output / "output.xml"):
        if isinstance(item, Recorded):
            row = json.loads(RESUMED.sub("null", item.record.model_dump_json()))
            row["warnings"] = [text for text in row.get("warnings") or () if text]
            found.append([item.status, item.message, row])
        else:
            found.append(str(replace(item, source="")))
    return found


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Places where two datasets differ, but for times and for what says that a run was resumed."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other} - OF_A_RUN):
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif one != other:
        yield f"{place}: {str(one)[:200]} and {str(other)[:200]}"


@pytest.mark.parametrize("name", STUDIES)
def test_a_run_that_is_ended_while_it_writes_or_sends_is_resumed_to_the_same_results(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run at the same time, a full disk, a request to end, and a clock that is stepped forward and back."""
    study = STUDIES[name]
    options, source, whole = (*SIM, *study.options), study.source(tmp_path), tmp_path / "whole"
    run_robot(whole, *options, sources=[source])
    (folder := tmp_path / "run").mkdir()
    resume = ("-v", f"RESUME:{folder}")
    clock = Clock(tmp_path)
    if FAKETIME:
        for variable, value in clock.variables().items():
            monkeypatch.setenv(variable, value)
    with small_disk(folder, 80):
        paused = Paused(tmp_path, [study.writing])
        with going_on(folder, *options, *paused.options, sources=[source]) as run, paused.at(study.writing, run):
            second = run_robot(folder, *options, *resume, "--output", "NONE", sources=[source], check=False)
            clock.step("+30d")
            with filled(folder):
                run.send_signal(signal.SIGCONT)
                said, _ = run.communicate(timeout=600)
        assert run.returncode not in (0, None), said
        assert "No space left on device; fix that, then resume the run" in said
        assert "Traceback" not in said
        assert second.returncode != 0
        assert "the run of this journal is still active" in second.stdout
        paused = Paused(tmp_path, [study.sending])
        with going_on(folder, *options, *resume, *paused.options, sources=[source]) as run:
            with paused.at(study.sending, run):
                run.terminate()
            said, _ = run.communicate(timeout=600)
        assert run.returncode not in (0, None), said
        again = replace(study.sending, test="", call=1)
        paused = Paused(tmp_path, [again])
        with going_on(folder, *options, *resume, *paused.options, sources=[source]) as run:
            with paused.at(again, run):
                clock.step("-60d")
            said, _ = run.communicate(timeout=600)
        assert run.returncode == 0, said
        assert list(differences(dataset(folder), dataset(whole))) == []


def test_a_run_that_is_asked_to_end_at_any_moment_resumes_and_lists_no_placeholder(tmp_path: Path) -> None:
    """SIGTERM while a cell is deployed, loaded and removed, while its result is written, and before the next test.

    The run that resumes last is stopped (SIGSTOP) at each of these moments in a later test, and continued. Results are
    compared with those of an undisturbed run.
    """
    options = (*SIM, "-v", "CELLS:1-2x1", "-v", "NF_SIZES:1c", "--suite", "csc-mrr", "--suite", "csp-mrr")
    whole, folder = tmp_path / "whole", tmp_path / "run"
    run_robot(whole, *options)
    moments = [*(Moment(at, "CSC 1R1C") for at in (DEPLOYED, SENDING, REMOVING, WRITING)), Moment(BETWEEN, call=2)]
    for number, moment in enumerate(moments):
        paused = Paused(tmp_path, [moment])
        resume = ("-v", f"RESUME:{folder}") if number else ()
        with going_on(folder, *options, *resume, *paused.options) as run:
            with paused.at(moment, run):
                run.terminate()
            said, _ = run.communicate(timeout=600)
        assert run.returncode not in (0, None), said
        assert "Place Of The Rows" not in said, moment.name
        assert "Place Of The Rows" not in csit("show", str(folder / "output.xml")).stdout
    stops = [Moment(at, "CSP 1R1C") for at in (DEPLOYED, SENDING, REMOVING, WRITING, BETWEEN)]
    paused = Paused(tmp_path, stops)
    with going_on(folder, *options, "-v", f"RESUME:{folder}", *paused.options) as run:
        for stop in stops:
            with paused.at(stop, run):
                pass
        said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    assert list(differences(dataset(folder), dataset(whole))) == []


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""The library; None where it is not installed."""


class Clock:
    """The wall clock of a run and of all that it starts, by a preloaded library; monotonic clocks go on as they do."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.step("+0")

    def step(self, offset: str) -> None:
        """Set it that far from the machine's: `+1d`."""
        self._file.write_text(f"{offset}\n", encoding="ascii")

    def variables(self) -> dict[str, str]:
        """Of the environment of a run."""
        return {
            "LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self._file), "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
