"""The steps of a build: which commands they run, whatever the parameters say; another VPP build for a run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from jenkins.with_vpp import with_vpp
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from tests.builders import shell_program

ROOT = Path(__file__).parents[3]
JENKINS = ROOT / "jenkins"
LAB = ROOT / "topologies" / "available" / "lab-2n-vpp.yaml"
PIPELINES = sorted(JENKINS.glob("*.groovy")) + sorted(JENKINS.glob("*.Jenkinsfile"))
STEPS = ("prepare", "reserve", "measure", "release", "report", "gate", "clean")
STUB = r"""#!/bin/sh
{ printf '%s\0' "$@"; printf '\1'; } >>calls
[ "$1" != reserve ] || echo CSIT_RESERVATION=ours
[ -s "status-$1" ] || exit 0
read -r status <"status-$1"
sed -i 1d "status-$1"
exit "$status"
"""
"""In the place of ./csit: keeps its words, and ends with the statuses that a test names, one call after the other."""
HOSTILE = "x; touch stolen\n$(touch stolen) `touch stolen` 'a \"b' && touch stolen | * ${HOME} \\"
VALUES = {"TOPOLOGY": "topologies/sim.yaml", "ARGS": "tests/density", "REASON": "a try", "HOURS": "2"}


class Build:
    """A build in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "csit").write_text(STUB, encoding="utf-8")
        (folder / "csit").chmod(0o755)
        (folder / "jenkins").symlink_to(JENKINS)

    def step(self, name: str, **values: str) -> int:
        env = {"PATH": "/usr/bin:/bin", **VALUES, **values}
        done = subprocess.run(["jenkins/build", name], cwd=self.folder, env=env, capture_output=True, check=False)
        return done.returncode

    def ends(self, command: str, *statuses: int) -> None:
        """Let calls of a command end with statuses other than 0."""
        (self.folder / f"status-{command}").write_text("".join(f"{each}\n" for each in statuses), encoding="utf-8")

    @property
    def calls(self) -> list[list[str]]:
        file = self.folder / "calls"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return [call.split("\0")[:-1] for call in text.split("\1")[:-1]]

    @property
    def commands(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """A build that has reserved its testbed."""
    found = Build(tmp_path)
    assert (found.step("prepare"), found.step("reserve")) == (0, 0)
    (tmp_path / "calls").unlink()
    return found


@pytest.mark.parametrize("more", [{}, {"BUDGET": HOSTILE}])
def test_whatever_a_parameter_says_it_is_one_word(tmp_path: Path, more: dict[str, str]) -> None:
    found = Build(tmp_path)
    values = {"ARGS": HOSTILE, "REASON": HOSTILE, "WAIT": HOSTILE, **more}
    for step in ("prepare", "reserve", "measure", "release"):
        assert found.step(step, **values) == 0
    words = [word for call in found.calls for word in call]
    assert words.count(HOSTILE) == (5 if more else 3) and f"{HOSTILE}; by hand" in words
    assert not list(tmp_path.rglob("stolen*"))


def test_a_patch_and_a_step_of_a_gate_are_one_word_too(build: Build) -> None:
    assert build.step("prepare", STEP=HOSTILE) == 0
    assert (build.folder / "results/sim/step.json").read_text(encoding="utf-8") == f"{HOSTILE}\n"
    assert build.step("measure", VPP=HOSTILE) not in {0, 1}, "the folder is no folder: nothing is installed"
    assert not list(build.folder.rglob("stolen*"))


WRONG = [
    *(
        {"TOPOLOGY": f"{path}.yaml"}
        for path in ("sim", "/topologies/sim", "topologies/", "topologies/-a", "topologies/a b")
    ),
    *({"HOURS": hours} for hours in ("x", "100", "$(id)", "1+1")),
]


@pytest.mark.parametrize("values", WRONG, ids=str)
def test_a_testbed_without_a_name_and_hours_that_are_no_number_are_refused(
    tmp_path: Path, values: dict[str, str]
) -> None:
    """The results of no name would be the folder of all results, which is removed before a run."""
    found = Build(tmp_path)
    assert found.step("prepare", **values) != 0
    assert found.calls == [] and not (tmp_path / "results").exists()


def test_the_lease_is_longer_than_the_build(tmp_path: Path) -> None:
    found = Build(tmp_path)
    assert (found.step("prepare", HOURS=""), found.step("reserve")) == (0, 0)
    (reserve,) = (call for call in found.calls if call[0] == "reserve")
    assert reserve[reserve.index("--lease") + 1] == "3h"


@pytest.mark.parametrize(
    ("outcomes", "status", "commands"),
    [
        ([0], 0, ["doctor", "robot", "outcome"]),
        ([1], 1, ["doctor", "robot", "outcome"]),
        ([2], 2, ["doctor", "robot", "outcome"]),
        ([3, 0], 0, ["doctor", "robot", "outcome", "cleanup", "doctor", "robot", "outcome"]),
        ([3, 3], 3, ["doctor", "robot", "outcome", "cleanup", "doctor", "robot", "outcome"]),
    ],
)
def test_an_interrupted_run_is_resumed_once(
    build: Build, outcomes: list[int], status: int, commands: list[str]
) -> None:
    build.ends("robot", 7, 7)  # failed tests
    build.ends("outcome", *outcomes)
    assert build.step("measure") == status
    assert build.commands == commands
    assert [call[1] for call in build.calls if call[0] == "robot"] == ["--args", "--resume"][: len(outcomes)]


@pytest.mark.parametrize(
    ("outcomes", "status", "runs"), [([0, 0], 0, 2), ([1, 0], 1, 2), ([0, 3, 1], 1, 3), ([3, 3], 3, 2)]
)
def test_the_runs_of_a_night_are_measured_until_one_is_incomplete(
    build: Build, outcomes: list[int], status: int, runs: int
) -> None:
    (night := build.folder / "results/sim/night").mkdir()
    for name in ("01-suspected.args", "02-unseen.args"):
        (night / name).touch()
    build.ends("outcome", *outcomes)
    assert build.step("measure", BUDGET="8") == status
    assert (build.commands.count("night"), build.commands.count("robot")) == (1, runs)
    assert ["robot", "--xunit", "xunit.xml", "-A", "results/sim/night/01-suspected.args"] in build.calls
    assert build.commands.count("outcome") == len(outcomes)


@pytest.mark.parametrize(
    ("values", "command", "ending", "status"),
    [
        ({"BUDGET": "8"}, "night", 2, 2),
        ({"STEP": "[{}]", "CSIT_BISECT": "spec.yaml"}, "bisect", 3, 1),
        ({"STEP": "[{}]", "CSIT_BISECT": "spec.yaml"}, "bisect", 2, 2),
    ],
)
def test_nights_and_bisections_are_judged_by_their_statuses(
    build: Build, values: dict[str, str], command: str, ending: int, status: int
) -> None:
    build.ends(command, ending)
    assert build.step("measure", **values) == status
    assert build.commands.count(command) == 1 and "robot" not in build.commands


def test_a_problem_of_the_testbed_ends_the_build_before_it_measures(build: Build) -> None:
    build.ends("doctor", 1)
    assert build.step("measure") == 2
    assert build.commands == ["doctor"]


def test_the_testbed_is_released_where_the_cleanup_fails_and_not_where_others_have_it(build: Build) -> None:
    build.ends("cleanup", 1)
    assert build.step("release") == 1
    assert build.commands == ["cleanup", "release"]
    (build.folder / "results/sim/reservation").write_text("", encoding="utf-8")
    assert build.step("release") == 0
    assert build.commands == ["cleanup", "release"]
    assert build.step("measure") == 2, "nothing is measured on it either"


@pytest.mark.parametrize(("verdict", "trend", "status"), [(0, "[]", 0), (1, "[]", 1), (0, "[{}]", 1), (2, "[]", 2)])
def test_a_gate_fails_by_a_fall_or_a_confirmed_regression(build: Build, verdict: int, trend: str, status: int) -> None:
    results = build.folder / "results/sim"
    assert build.step("gate", CSIT_HISTORY="history") == 0 and build.calls == [], "nothing was measured"
    (results / "output.xml").touch()
    (results / "trend.json").write_text(trend, encoding="utf-8")
    build.ends("gate", verdict)
    assert build.step("gate", CSIT_HISTORY="history") == status
    assert build.commands == ["import", "gate", "trend"][: 3 if verdict < 2 else 2]


def test_a_patch_is_judged_and_does_not_become_history(build: Build) -> None:
    (build.folder / "results/sim/output.xml").touch()
    (build.folder / "history").touch()
    assert build.step("gate", CSIT_HISTORY="history", VPP="/opt/vpp") == 0
    assert build.commands == ["gate"]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.name)
def test_a_pipeline_runs_steps_and_no_line_of_its_own(pipeline: Path) -> None:
    text = re.sub(r"(?m)(^|\s)//.*$", "", pipeline.read_text(encoding="utf-8"))
    for call in re.findall(r"\bsh\b.{0,70}", text):
        found = re.match(r"sh ?\(?(?:returnStatus: true, script: )?'jenkins/build (\w+)'", call)
        assert found is not None and found[1] in STEPS, call
    assert set(re.findall(r"\bload\b.*", text)) <= {"load 'jenkins/measure.groovy'"}
    code = re.sub(r"'[^'\n]*'", "''", text)
    assert code.count("{") == code.count("}") and code.count("(") == code.count(")")


def test_only_the_folder_of_vpp_is_another_one_and_a_testbed_without_vpp_is_refused(tmp_path: Path) -> None:
    testbed = tmp_path / "testbed.yaml"
    with_vpp(LAB, "/opt/vpp/4711", testbed)
    then, now = load_topology(LAB), load_topology(testbed)
    assert {dut.settings(Vpp).prefix for dut in now.duts.values()} == {"/opt/vpp/4711"}
    as_before = {
        name: node.model_copy(update={"vpp": then.nodes[name].settings(Vpp)}) if name in now.duts else node
        for name, node in now.nodes.items()
    }
    assert now.model_copy(update={"nodes": as_before}) == then
    with pytest.raises(ConfigError, match="no DUT uses VPP"):
        with_vpp(ROOT / "topologies" / "sim.yaml", "/opt/vpp/4711", tmp_path / "none.yaml")
    assert not (tmp_path / "none.yaml").exists()


def test_the_lab_installs_before_the_topology_is_written(tmp_path: Path) -> None:
    program, testbed = tmp_path / "install", tmp_path / "testbed.yaml"
    shell_program(program, f'echo "$@" >{tmp_path}/said\n[ "$2" != /opt/vpp/missing ]')
    for prefix, status in (("/opt/vpp/missing", 1), ("/opt/vpp/4711", 0)):
        assert not testbed.exists()
        done = subprocess.run(
            [ROOT / "jenkins" / "install-vpp", LAB, prefix, testbed],
            env={"CSIT_INSTALL_VPP": str(program), "CSIT_VENV": sys.prefix},
            check=False,
        )
        assert done.returncode == status
        assert (tmp_path / "said").read_text(encoding="utf-8") == f"{LAB} {prefix}\n"
    assert load_topology(testbed).dut.settings(Vpp).prefix == "/opt/vpp/4711"
