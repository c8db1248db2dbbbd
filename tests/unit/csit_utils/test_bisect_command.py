"""`./csit bisect`: specifications, revisions, the loop with failures and interruptions, texts and page."""

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

import csit_utils.commands.runs.bisect as bisect_module
from csit_utils.analysis.bisection import BisectionAnswer, BisectionQuestion
from csit_utils.bisection.page import as_object, effort, headline, render_bisection
from csit_utils.bisection.revisions import Revision, revisions_of
from csit_utils.bisection.run import BisectionJournal, BisectionResult, BisectionRun
from csit_utils.bisection.spec import BisectionSpec, CommandLines, GitRange, OrderedList
from csit_utils.commands.runs.bisect import bisect
from csit_utils.commands.tables import TableForm
from resources.libraries.python.errors import CommandFailed, ConfigError, CsitError, NoTraffic
from resources.libraries.python.paths import PROJECT

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


def test_the_culprit_is_named_with_change_and_effort(tmp_path: Path) -> None:
    result = bisected(System(7), tmp_path / "j")
    assert culprits(result) == [(7, 7)]
    assert headline(result, VERSIONS).startswith("culprit: 1.7: 1.00 kpps to 902 pps (")
    assert f"of {len(VERSIONS)} revisions, {int(result.seconds)}" in effort(result, VERSIONS)
    found = json.loads(json.dumps(as_object(result, VERSIONS)))
    assert found["culprits"][0]["revisions"] == ["1.7"]
    assert found["trials"] == sum(len(each["values"]) for each in found["revisions"])


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


def test_the_page_marks_the_culprit_and_escapes_texts(tmp_path: Path) -> None:
    result = bisected(System(7, broken=frozenset({5})), tmp_path / "j")
    named = [Revision(name=each.name, label=f"<b>{each.label}") for each in VERSIONS]
    page = render_bisection(result, named, "MRR of a cell", simulated=True)
    assert page.count('class="culprit"') == 1
    assert page.count('class="band"') == 1
    assert page.count('class="level"') == len(result.observed)
    assert "<b>1." not in page
    assert "SIMULATED" in page
    assert result.beliefs.answer is BisectionAnswer.CULPRIT


def git(folder: Path, *arguments: str) -> str:
    argv = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


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
        ("v1", "v1", "'v1' is no ancestor of 'v1'"),
        ("--all", "main", "no revision '--all'"),
    ],
)
def test_wrong_ends_are_refused(repository: Path, good: str, bad: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        revisions_of(GitRange(git=Path(), good=good, bad=bad), repository)


def test_command_lines_change_by_one_parameter_at_a_time() -> None:
    found = revisions_of(
        CommandLines(good_command_line="quiet isolcpus=2 nosmt", bad_command_line="quiet isolcpus=2-3 mitigations=off"),
        Path(),
    )
    assert [each.name for each in found] == [
        "quiet isolcpus=2 nosmt",
        "quiet isolcpus=2-3 nosmt",
        "quiet isolcpus=2-3 nosmt mitigations=off",
        "quiet isolcpus=2-3 mitigations=off",
    ]
    assert [each.label for each in found[1:]] == ["isolcpus=2 → isolcpus=2-3", "+ mitigations=off", "- nosmt"]


def test_equal_command_lines_and_repeated_versions_are_refused() -> None:
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
def test_a_simulated_testbed_is_measured_by_each_metric(
    tmp_path: Path, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    load = {"load_pps": 1e6} if metric == "forwarded" else {}
    assert command(tmp_path, metric=metric, change="10%", **load) == 3
    said = capsys.readouterr()
    found = json.loads(said.out.splitlines()[-1])
    assert found["answer"] == "not in these revisions"
    assert found == json.loads((tmp_path / "out" / "bisection.json").read_text(encoding="utf-8"))
    assert f"{metric} " in said.err.splitlines()[-1]
    assert "SIMULATED" in (tmp_path / "out" / "bisection.html").read_text(encoding="utf-8")


def test_a_finished_bisection_is_not_measured_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(tmp_path, change="10%")
    lines = (tmp_path / "out" / "bisection.jsonl").read_text(encoding="utf-8")
    capsys.readouterr()
    assert command(tmp_path, change="10%") == 3
    assert "steps of an earlier run are continued" in capsys.readouterr().err
    assert (tmp_path / "out" / "bisection.jsonl").read_text(encoding="utf-8") == lines


def test_too_few_observations_end_undecided(tmp_path: Path) -> None:
    assert command(tmp_path, most_observations=5, change="0.1%") == 4


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"install": ["make"]}, "install"),
        ({"install": ["make", "now"]}, "no argument has {revision}"),
        ({"change": "0%"}, "expected a share from 0.1% to 50%"),
        ({"source": {"versions": ["1"]}}, r"source\.versions: 1 item; at least 2 are needed"),
        (
            {"source": {"versions": [1.0, 1.1]}},
            r"source\.versions\.0: 1\.0 without quotes is a number, and a string is expected",
        ),
        ({"source": {"good_command_line": "a"}}, r"source\.bad_command_line: is missing"),
        ({"metric": "speed"}, "metric"),
        ({"trials": 0}, "trials"),
        ({"colour": "red"}, "colour"),
        ({"load_pps": 1000.0}, "load_pps is for the metric forwarded"),
        ({"metric": "forwarded"}, "load_pps is for the metric forwarded"),
        ({"cell": "CSC {1,2}x1"}, "cell"),
        ({"program": {"start": ["true"]}}, "program: "),
        ({"install": ["/no/such/program", "{revision}"]}, "install: /no/such/program cannot be run"),
        ({"install": ["sh", "-c", "echo broken; exit 3", "{revision}"]}, "ended with 3: broken"),
        ({"install": ["sh", "-c", "head -c 10000000 /dev/zero; echo broken; exit 3", "{revision}"]}, "broken"),
        ({"install": ["sleep", "60", "{revision}"], "install_limit_s": 0.05}, "still running"),
        ({"install": ["./no-such-script", "{revision}"]}, "install: ./no-such-script cannot be run"),
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
