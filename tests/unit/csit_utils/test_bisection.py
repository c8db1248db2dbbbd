"""Bisections: where they measure next and what they find; specifications, revisions, interruptions, texts and page."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

import csit_utils.commands.runs.bisect as bisect_module
from csit_utils.analysis.bisection import Beliefs, BisectionAnswer, BisectionQuestion, look
from csit_utils.analysis.comparisons.comparison import compare, decide
from csit_utils.bisection.run import BisectionJournal, BisectionResult, BisectionRun
from csit_utils.bisection.spec import (
    CALLED_STEPS,
    BisectionSpec,
    CalledStep,
    CommandLines,
    GitRange,
    OrderedList,
    Revision,
    narrowed,
    revisions_of,
    write_steps,
)
from csit_utils.cli import make_app
from csit_utils.commands.results.gate import _called
from csit_utils.commands.runs.bisect import as_object, bisect, effort, headline, render_bisection
from csit_utils.commands.tables import TableForm
from resources.libraries.python.errors import CommandFailed, ConfigError, CsitError, NoTraffic
from resources.libraries.python.paths import PROJECT
from tests.builders import git
from tests.unit.csit_utils.histories import nights


def run(
    levels: Sequence[float], question: BisectionQuestion, skipped: frozenset[int] = frozenset()
) -> tuple[Beliefs, list[int]]:
    """Measure a history without chance; what is found, and the revisions in the order of measurement."""
    values: dict[int, list[float]] = {}
    order: list[int] = []
    while (found := look(values, skipped, question)).next is not None:
        seen = values.setdefault(found.next, [])
        seen.append(levels[found.next] + (-0.001 if len(seen) % 2 else 0.001))
        order.append(found.next)
    return found, order


def places(found: Beliefs) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in found.culprits]


def test_a_change_is_found_with_a_few_observations_of_a_few_revisions() -> None:
    found, order = run([0.0] * 37 + [-0.05] * 27, BisectionQuestion(64))
    assert (found.answer, places(found)) == (BisectionAnswer.CULPRIT, [(37, 37)])
    assert found.probability >= 0.99 and found.culprits[0].probability >= 0.99
    assert len(order) < 24 and order[:2] == [0, 63]
    for number, level in found.levels.items():
        assert level.mean == pytest.approx(0.0 if number < 37 else -0.05, abs=0.01)
        assert 0 <= level.stdev < 0.01


@pytest.mark.parametrize(
    ("levels", "change", "culprits"),
    [
        ([0.0] * 10 + [-0.05] * 8 + [-0.1] * 14, 0.0, [10, 18]),
        ([0.0] * 10 + [-0.15] * 8 + [-0.1] * 14, 0.0, [10, 18]),
        ([0.0] * 10 + [0.06] * 8 + [-0.1] * 14, 0.0, [10, 18]),
        ([0.0, -0.1], 0.0, [1]),
        ([0.0] * 16, 0.0, []),
        ([0.0] * 8 + [-0.004] * 8, 0.03, []),  # a change below the least change
    ],
)
def test_none_one_or_two_changes_are_as_many_culprits(levels: list[float], change: float, culprits: list[int]) -> None:
    question = BisectionQuestion(len(levels), change=change) if change else BisectionQuestion(len(levels))
    found, order = run(levels, question)
    answers = (BisectionAnswer.NOT_HERE, BisectionAnswer.CULPRIT, BisectionAnswer.TWO_CULPRITS)
    assert (found.answer, places(found)) == (answers[len(culprits)], [(place, place) for place in culprits])
    assert culprits or set(order) == {0, len(levels) - 1}


def test_revisions_that_cannot_be_measured_are_named_and_few_observations_end_undecided() -> None:
    found, order = run([0.0] * 6 + [-0.1] * 10, BisectionQuestion(16), skipped=frozenset({5, 6, 7}))
    assert (found.answer, places(found)) == (BisectionAnswer.CULPRIT, [(5, 8)])
    assert not {5, 6, 7} & set(order)
    found, order = run([0.0] * 20 + [-0.05] * 12, BisectionQuestion(32, most=5))
    assert (found.answer, len(order)) == (BisectionAnswer.UNDECIDED, 5)
    assert found.culprits[0].first <= 20 <= found.culprits[0].last


STEP = CalledStep(
    cell="CSC 2x1 1c vswitch-1c", frame="IMIX", metric="PDR", change=-0.08,
    good="VPP 26.06-rc0~12-g0123abcd", bad="VPP 26.10-rc0~57-gc3313a2d0",
)  # fmt: skip
SPEC = {
    "source": {"git": "/srv/vpp", "good": "v26.06", "bad": "master"},
    "install": ["./install", "{revision}"],
    "topology": "topologies/sim.yaml",
    "cell": "CSC 1x1 1c",
}


def test_the_range_of_a_step_is_that_of_its_versions_or_refused() -> None:
    found = narrowed(BisectionSpec.model_validate(SPEC), [STEP])
    assert isinstance(found.source, GitRange)
    assert (found.source.good, found.source.bad) == ("0123abcd", "c3313a2d0")
    assert (found.cell, found.frame, found.metric) == (STEP.cell, "IMIX", "PDR")
    spec = BisectionSpec.model_validate(SPEC | {"source": {"versions": ["1.0", "1.1", "1.2", "1.3"]}})
    step = STEP.model_copy(update={"good": "OVS 1.1", "bad": "OVS 1.3"})
    found = narrowed(spec, [step])
    assert isinstance(found.source, OrderedList)
    assert found.source.versions == ("1.1", "1.2", "1.3")
    for changes, sentence in (
        ({"bad": "OVS 2.0"}, r"version 2\.0 is not in the list"),
        ({"bad": step.good}, "the change is elsewhere"),
        ({"metric": "kept-in-event"}, "has no step"),
    ):
        with pytest.raises(ValueError, match=sentence):
            narrowed(spec, [step.model_copy(update=changes)])


def test_what_a_gate_writes_can_be_read(tmp_path: Path) -> None:
    before = nights(10, lambda _: 5e6, version="VPP 26.06")
    after = nights(11, lambda _: 4e6, version="VPP 26.10")[-1:]
    found = decide(compare(before, after), after)
    write_steps(tmp_path / "steps.json", map(_called, found.fallen))
    steps = CALLED_STEPS.validate_json((tmp_path / "steps.json").read_bytes())
    assert {step.metric for step in steps} == {"NDR", "PDR"}
    assert steps[0].cell == "CSC 1x1 1c vswitch-1c"
    assert (steps[0].good, steps[0].bad, steps[0].frame) == ("VPP 26.06", "VPP 26.10", "64B")


def test_the_command_lists_the_revisions_between_the_versions(tmp_path: Path) -> None:
    spec = SPEC | {"source": {"versions": ["1.0", "1.1", "1.2", "1.3"]}}
    tmp_path.joinpath("spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    step = STEP.model_copy(update={"good": "OVS 1.1", "bad": "OVS 1.2"})
    tmp_path.joinpath("steps.json").write_text(f"[{step.model_dump_json()}]", encoding="utf-8")
    argv = ["bisect", str(tmp_path / "spec.yaml"), "--step", str(tmp_path / "steps.json"), "--list"]
    done = CliRunner().invoke(make_app(argv), argv)
    assert done.output.splitlines() == ["0\t1.1", "1\t1.2"]


VERSIONS = tuple(Revision(name=f"1.{number}", label=f"1.{number}") for number in range(12))
SIM = {
    "source": {"versions": ["1.0", "1.1", "1.2", "1.3"]},
    "install": ["true", "{revision}"],
    "topology": str(PROJECT / "topologies" / "sim.yaml"),
    "cell": "CSC 1x1 1c",
}


class System:
    """A component that becomes slow with a version, and what was done to it."""

    def __init__(self, slow: int, *, broken: frozenset[int] = frozenset(), dead: frozenset[int] = frozenset()) -> None:
        self.slow, self.broken, self.dead = slow, broken, dead
        self.installed: list[int] = []
        self.measured = 0
        self.dies_after = 10_000

    def install(self, revision: Revision) -> None:
        number = VERSIONS.index(revision)
        self.installed.append(number)
        if number in self.broken:
            raise CommandFailed(["make"], 2, "no rule")

    def measure(self) -> Sequence[float]:
        if self.measured == self.dies_after:
            raise KeyboardInterrupt
        self.measured += 1
        number = self.installed[-1]
        if number in self.dead:
            raise NoTraffic("no packet came back")
        return ((900.0 if number >= self.slow else 1000.0) + self.measured % 3,)


def bisected(system: System, path: Path, digest: str = "one") -> BisectionResult:
    with BisectionJournal(path, digest) as journal:
        question = BisectionQuestion(len(VERSIONS))
        return BisectionRun(
            VERSIONS, question, journal, system.install, system.measure, clock=count(1.0).__next__
        ).run()


def culprits(result: BisectionResult) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in result.beliefs.culprits]


def test_the_culprit_is_named_with_change_and_effort_and_marked_on_a_page_that_escapes_texts(tmp_path: Path) -> None:
    result = bisected(System(7), tmp_path / "j")
    assert culprits(result) == [(7, 7)]
    assert headline(result, VERSIONS).startswith("culprit: 1.7: 1.00 kpps to 902 pps (")
    assert f"of {len(VERSIONS)} revisions, {int(result.seconds)}" in effort(result, VERSIONS)
    found = json.loads(json.dumps(as_object(result, VERSIONS)))
    assert found["culprits"][0]["revisions"] == ["1.7"]
    assert found["trials"] == sum(len(each["values"]) for each in found["revisions"])
    named = [Revision(name=each.name, label=f"<b>{each.label}") for each in VERSIONS]
    page = render_bisection(result, named, "MRR of a cell", simulated=True)
    assert page.count('class="culprit"') == 1
    assert "<b>1." not in page
    assert "SIMULATED" in page


def test_what_cannot_be_installed_or_forwards_nothing_is_skipped_after_a_second_attempt(tmp_path: Path) -> None:
    system = System(7, broken=frozenset({6}), dead=frozenset({5}))
    result = bisected(system, tmp_path / "j")
    assert culprits(result) == [(5, 7)]
    assert set(result.skipped) <= {5, 6}
    assert all(system.installed.count(number) == 2 for number in result.skipped)
    assert "one of 3 revisions from 1.5 to 1.7" in headline(result, VERSIONS)


@pytest.mark.parametrize("end", [0, 11])
def test_an_end_that_cannot_be_measured_is_an_error_and_tried_again_by_the_next_run(tmp_path: Path, end: int) -> None:
    with pytest.raises(CsitError, match=rf"1\.{end}: make ended with 2.*end of the bisection"):
        bisected(System(7, broken=frozenset({end})), tmp_path / "j")
    assert culprits(bisected(System(7), tmp_path / "j")) == [(7, 7)]


def test_an_interrupted_bisection_continues_and_installs_again(tmp_path: Path) -> None:
    whole, first, second = System(7), System(7), System(7)
    expected = bisected(whole, tmp_path / "whole")
    first.dies_after = 6
    with pytest.raises(KeyboardInterrupt):
        bisected(first, tmp_path / "j")
    second.measured = 6
    result = bisected(second, tmp_path / "j")
    assert second.measured == whole.measured
    assert culprits(result) == culprits(expected)
    assert result.trials == expected.trials


def test_a_step_that_cannot_be_of_this_bisection_is_refused(tmp_path: Path) -> None:
    bisected(System(7), tmp_path / "j")
    path = tmp_path / "j"
    path.write_text(path.read_text(encoding="utf-8").replace('"1.11"', '"2.0"'), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a step of revision '2\.0', which is not in this bisection"):
        bisected(System(7), path)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed here")
    for name, value in {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)  # users sign their commits, or have hooks
    git(tmp_path, "init", "-q", "-b", "main")
    for number in range(4):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", f"Change {number}")
        git(tmp_path, "tag", f"v{number}")
    yield tmp_path


def test_commits_are_listed_from_good_to_bad_also_from_the_first_one(repository: Path) -> None:
    found = revisions_of(GitRange(git=Path(), good="v0", bad="main"), repository)
    assert [each.label.split(" ", 1)[1] for each in found] == [f"Change {number}" for number in range(4)]
    assert [each.name for each in found[:1]] == [git(repository, "rev-parse", "v0")]
    assert len(revisions_of(GitRange(git=repository, good="v1", bad="v2"), Path("/"))) == 2


def test_a_repository_has_no_program_run_by_the_list_of_its_commits(repository: Path, tmp_path: Path) -> None:
    """Its configuration is in its folder: what came with it would check signatures."""
    program, ran = tmp_path / "gpg", tmp_path / "ran"
    # It reads what it signs: git fails where the program has ended before all is written.
    signed = "echo '-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----'; echo '\n[GNUPG:] SIG_CREATED ' >&2"
    script = f"case $* in *--verify*) touch {ran} ;; *) cat >/dev/null; {signed} ;; esac"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    program.chmod(0o755)
    git(repository, "config", "gpg.program", str(program))
    git(repository, "config", "log.showSignature", "true")
    git(repository, "commit", "-q", "-S", "--allow-empty", "-m", "Signed")
    revisions_of(GitRange(git=Path(), good="v0", bad="main"), repository)
    assert not ran.exists()
    git(repository, "log")
    assert ran.exists(), "by git itself"


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        ("v9", "main", "no revision 'v9'"),
        ("main", "v0", "'main' is no ancestor of 'v0'"),
        ("--all", "main", "no revision '--all'"),
    ],
)
def test_wrong_ends_are_refused(repository: Path, good: str, bad: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        revisions_of(GitRange(git=Path(), good=good, bad=bad), repository)


def test_command_lines_change_by_one_parameter_at_a_time_and_equal_ones_are_refused() -> None:
    found = revisions_of(
        CommandLines(good_command_line="quiet isolcpus=2 nosmt", bad_command_line="quiet isolcpus=2-3 mitigations=off"),
        Path(),
    )
    names = (
        "isolcpus=2 nosmt",
        "isolcpus=2-3 nosmt",
        "isolcpus=2-3 nosmt mitigations=off",
        "isolcpus=2-3 mitigations=off",
    )
    assert [each.name for each in found] == [f"quiet {name}" for name in names]
    assert [each.label for each in found[1:]] == ["isolcpus=2 → isolcpus=2-3", "+ mitigations=off", "- nosmt"]
    with pytest.raises(ConfigError, match="same parameters"):
        revisions_of(CommandLines(good_command_line="a b", bad_command_line="b a"), Path())
    with pytest.raises(ConfigError, match="'2' is listed twice"):
        revisions_of(OrderedList(versions=("1", "2", "2")), Path())


def command(folder: Path, **change: Any) -> int:
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(SIM | change), encoding="utf-8")
    try:
        bisect(path, folder / "out", list_them=False, form=TableForm.JSON)
    except typer.Exit as end:
        return end.exit_code
    return 0


@pytest.mark.parametrize(
    "metric", ["MRR", *(pytest.param(metric, marks=pytest.mark.slow) for metric in ("forwarded", "PDR"))]
)
def test_a_simulated_testbed_has_each_metric(tmp_path: Path, metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    load = {"load_pps": 1e6} if metric == "forwarded" else {}
    assert command(tmp_path, metric=metric, change="10%", **load) == 3
    said = capsys.readouterr()
    found = json.loads(said.out.splitlines()[-1])
    assert found["answer"] == "not in these revisions"
    assert found == json.loads((tmp_path / "out" / "bisection.json").read_text(encoding="utf-8"))
    assert f"{metric} " in said.err.splitlines()[-1]
    assert "SIMULATED" in (tmp_path / "out" / "bisection.html").read_text(encoding="utf-8")


def test_a_finished_one_is_not_repeated_and_few_are_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command(tmp_path, change="10%")
    lines = (tmp_path / "out" / "bisection.jsonl").read_text(encoding="utf-8")
    capsys.readouterr()
    assert command(tmp_path, change="10%") == 3
    assert "steps of an earlier run are continued" in capsys.readouterr().err
    assert (tmp_path / "out" / "bisection.jsonl").read_text(encoding="utf-8") == lines
    (other := tmp_path / "other").mkdir()
    assert command(other, most_observations=5, change="0.1%") == 4


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"install": ["make", "now"]}, "no argument has {revision}"),
        ({"change": "0%"}, "expected a share from 0.1% to 50%"),
        (
            {"source": {"versions": [1.0, 1.1]}},
            r"source\.versions\.0: 1\.0 without quotes is a number, and a string is expected",
        ),
        ({"load_pps": 1000.0}, "load_pps is for the metric forwarded"),
        ({"install": ["/no/such/program", "{revision}"]}, "install: /no/such/program cannot be run"),
        ({"install": ["sh", "-c", "head -c 10000000 /dev/zero; echo broken; exit 3", "{revision}"]}, "broken"),
        ({"install": ["sleep", "60", "{revision}"], "install_limit_s": 0.05}, "still running"),
    ],
)
def test_what_cannot_work_is_one_sentence(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(CsitError, match=reason):
        command(tmp_path, **change)


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_while_an_installation_is_started_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, ends: type[BaseException]
) -> None:
    def die(signal_number: int, _: object) -> None:
        raise ends(signal_number)

    class Signalled(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            (tmp_path / "process").write_text(str(self.pid))
            os.kill(os.getpid(), number)

    monkeypatch.setattr(subprocess, "Popen", Signalled)
    spec = BisectionSpec.model_validate(SIM | {"install": ["sleep", "30", "{revision}"]})
    before = signal.signal(number, die)
    try:
        with pytest.raises(ends):
            bisect_module._Installation(spec, tmp_path, str(tmp_path))(VERSIONS[0])
    finally:
        signal.signal(number, before)
    assert not Path("/proc", (tmp_path / "process").read_text()).exists()
