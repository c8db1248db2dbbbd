"""Command lines of runs: mistakes are one sentence before anything starts, `--args` of a build, and no secrets kept."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from robot import api
from robot.run import run_cli
from robot.running.context import EXECUTION_CONTEXTS

from csit_utils.cli import main, make_app
from csit_utils.commands.runs import command_line
from csit_utils.commands.runs.command_line import spread
from csit_utils.commands.runs.robot import run_suites
from csit_utils.studies.registry import cost_of
from resources.libraries.python.drivers.host.ownership import preflight
from resources.libraries.python.errors import ConfigError, Unsupported
from resources.libraries.python.model.request.variables import read_by
from resources.libraries.python.model.testbed.topology import World
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.redaction import redacted
from resources.libraries.python.studies.shared import choices_before_run
from resources.libraries.python.studies.shared.choices_before_run import _suites, refuse_misspelt
from resources.libraries.python.studies.shared.progress import human_time

DENSITY = str(PROJECT / "tests" / "density")
SUITE = str(PROJECT / "tests" / "density" / "csc-mrr.robot")
STUDIES = PROJECT / "tests" / "characterization"
OUTAGE = str(STUDIES / "outage.robot")
LOCAL = f"TOPOLOGY:{PROJECT / 'topologies' / 'local.yaml'}"
SIM = f"TOPOLOGY:{PROJECT / 'topologies' / 'sim.yaml'}"
OWN_SUITE = """\
*** Settings ***
Library        resources.libraries.python.studies.shared.StudyLibrary    outage
Variables      values.py
Suite Setup    Open Testbed

*** Variables ***
${REPORT}      ${SUITE NAME}.csv

*** Test Cases ***
Own
    [Tags]    OWN
    Log    measured
"""


def variables(*chosen: str) -> list[str]:
    return [word for variable in chosen for word in ("-v", variable)]


@pytest.fixture
def refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The sentence by which a command line is refused, before Robot begins."""

    def sentence(*words: str) -> str:
        with pytest.raises(ConfigError) as found:
            run_suites(["-d", str(tmp_path / "run"), *words])
        shown = capfd.readouterr()
        assert not {"FAIL", "Traceback"} & set(re.findall(r"\w+", shown.out + shown.err))
        assert not (tmp_path / "run").exists()
        return str(found.value)

    return sentence


@pytest.fixture
def planned(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a dry run announces before the first test."""

    def announced(*words: str) -> str:
        assert run_suites(["-d", str(tmp_path / "dry"), "--dryrun", "--console", "quiet", *words]) == 0
        return capfd.readouterr().out

    return announced


@pytest.mark.parametrize(
    ("suite", "chosen", "sentence"),
    [
        ("", [], "no testbed chosen; for example: -v TOPOLOGY:topologies/local.yaml"),
        ("", ["TOPOLOGY:nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
        ("", [SIM, "CELLS:1x"], "invalid cells at '1x'; expected rows x columns: 1x1,2x1 or "),
        ("", [SIM, "FRAME:IMIX"], "-v FRAME: no such variable; did you mean FRAMES?"),
        ("chains", [SIM, "SET:vnfs.9.kind=x"], "SET vnfs.9.kind: "),
        ("interference", [SIM, "SET:frame=[64B, 63B]"], "SET frame=[64B, 63B]: "),
        ("outage", [SIM, "SET:frame=[64B, 512B]"], "SET frame=[64B, 512B]: "),
        ("outage", [SIM, "SET:share=2"], "SET share=2: 2 is above the maximum of 1"),
        ("outage", [SIM, "FRAMES:IMIX"], "-v FRAMES: no such variable; "),
        ("outage", [SIM, "SET:shar=0.5"], "SET shar=0.5: unknown key; did you mean 'share'?"),
        ("sweep", [SIM, "SET:share=0.5"], "sweep firewall: unknown key 'share'; there are nf_kinds, "),
    ],
)
def test_a_wrong_choice_runs_nothing(refused: Callable[..., str], suite: str, chosen: list[str], sentence: str) -> None:
    file = str(STUDIES / f"{suite}.robot") if suite else SUITE
    assert refused(*variables(*chosen), file).startswith(sentence)


def test_keys_of_a_test_are_read_as_the_suite_sets_them(
    tmp_path: Path, planned: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choices_before_run, "PROJECT", tmp_path)
    suite = tmp_path / "tests" / "own.robot"
    suite.parent.mkdir()
    text = OWN_SUITE.replace("*** Test", "${FRAME}    128B\n*** Test")
    asked = "Run Study    outage/firewalls.yaml    frame=${FRAME}    only_in=sim"
    suite.write_text(text.replace("Log    measured", asked), encoding="utf-8")
    (tmp_path / "tests" / "values.py").touch()
    chosen = variables(SIM, "SET:repetitions=1")
    planned(*chosen, str(suite))
    with pytest.raises(ConfigError, match=r"'63B'"):
        planned(*chosen, "-v", "FRAME:63B", str(suite))


@pytest.mark.parametrize(
    "suite",
    [str(STUDIES / "sweep.robot"), *(pytest.param(each, marks=pytest.mark.slow) for each in (SUITE, str(STUDIES)))],
)
def test_a_user_without_rights_is_refused_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str) -> None:
    monkeypatch.setattr(preflight, "_missing_capabilities", lambda _: ["CAP_NET_ADMIN"])
    local = ["-d", str(tmp_path / "run"), *variables(LOCAL), suite]
    with pytest.raises(Unsupported, match=r"^CAP_NET_ADMIN missing for ") as found:
        run_suites(local)
    assert found.value.__cause__ is None, "its causes would have no end"
    assert not list((tmp_path / "run").glob("*"))
    assert run_suites(["--dryrun", "--console", "none", *local]) == 0


def test_the_time_of_all_suites_is_known_before(planned: Callable[..., str], capfd: pytest.CaptureFixture[str]) -> None:
    chosen = variables(LOCAL, "CELLS:1x1,1x2", "NF_SIZES:1c", "SEARCH:quick")
    suites = ["--suite", "Csc-Ndrpdr", "--suite", "Csc-Mrr"]
    found = planned(*chosen, *suites, DENSITY)
    make_app(["plan"])(
        ["plan", *chosen, "--types", "CSC", "--tests", "NDRPDR,MRR", "--format", "json"], standalone_mode=False
    )
    summary = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert found == f"{summary['tests']} tests, about {human_time(summary['seconds'])}\n"
    assert planned(*chosen, *suites, "--exclude", "1R2C", DENSITY).startswith("2 tests, about ")
    tests = api.TestSuite.from_file_system(OUTAGE).all_tests
    costs = [cost_of("outage", test.body[0].args, World.LOCAL) for test in tests]
    seconds = sum(cost.seconds for cost in costs if cost is not None)
    assert f"about {human_time(seconds)}\n" in planned(*variables(LOCAL), OUTAGE)
    assert planned(*variables(SIM), OUTAGE) == ""


@pytest.mark.parametrize("study", ["outages", "density", ""])
def test_a_suite_of_no_such_study_is_refused_with_the_studies_that_there_are(tmp_path: Path, study: str) -> None:
    suite = tmp_path / "own.robot"
    suite.write_text(OWN_SUITE.replace("StudyLibrary    outage", f"StudyLibrary    {study}".rstrip()), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"^no study '{study}'; there are chains, interference, outage, "):
        _suites(api.TestSuite.from_file_system(suite))


def test_keys_of_a_test_are_part_of_its_cost_and_a_test_for_another_world_has_none() -> None:
    once, twice = (cost_of("outage", ["outage/routers.yaml", f"repetitions={n}"], World.LOCAL) for n in (1, 2))
    assert once is not None and twice is not None and twice.steps == 2 * once.steps
    sizing = ["sip-service/deployment.json", "real", "workload=sip-service/reg-dereg.json"]
    assert cost_of("sizing", sizing, World.LAB) is not None
    with pytest.raises(Unsupported, match="needs real hosts"):
        cost_of("sizing", sizing, World.SIM)
    with pytest.raises(Unsupported, match="needs a simulated testbed"):
        cost_of("outage", ["outage/routers.yaml", "only_in=sim"], World.LOCAL)
    assert cost_of("outage", [], World.LOCAL) is None, "its first keyword is another"


SEVERAL = variables(SIM, "SET:frame=[64B, 512B]")
"""Frame sizes: a sweep of interference, and no frame size of an outage study."""
NOISE = variables(SIM, "NOISE_FLOOR:99")
NAMED = [*variables(SIM, "SET:outage.share=5"), "--name", "X", "--settag", "T"]


@pytest.mark.parametrize(
    "words",
    [
        [str(STUDIES)],
        [*SEVERAL, "--skip", "OUTAGE", OUTAGE],
        [*NAMED, "--skip", "T", "--suite", "X.Outage", str(STUDIES)],
        [*NAMED, "--suite", "X.Stateful", str(STUDIES)],
        [*variables(SIM, "SET:outage.frame=512B", "FRAMES:64B", "SET:outage.share=0.3"), SUITE, OUTAGE],
        pytest.param([*SEVERAL, "--include", "INTERFERENCE", str(STUDIES)], marks=pytest.mark.slow),
    ],
)
def test_tests_left_out_need_no_choice_and_dry_runs_no_testbed(planned: Callable[..., str], words: list[str]) -> None:
    planned(*words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*NAMED, "--suite", "X.Outage", str(STUDIES)], "SET share=5: 5 is above the maximum of 1"),
        *(
            pytest.param([*NOISE, *words, DENSITY], "NOISE_FLOOR '99': ", marks=pytest.mark.slow)
            for words in (
                ("--include", "NDRPDR", "--exclude", "NF_0.5C"),
                ("--test", "64B-1c-eth-l2bd-1ch-2mif-1dcr1t-simip4-mrr"),
            )
        ),
    ],
)
def test_filters_choose_from_names_tags_and_rows(refused: Callable[..., str], words: list[str], sentence: str) -> None:
    assert refused(*words).startswith(sentence)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("own.py", "from pathlib import Path\nimport os\n_OWN = 1\nSTACS = 5\n", "-v STACS: no such variable; did you"),
        ("own.args", "--variable STACS:5\n", "-v STACS: no such variable; did you mean STACKS?"),
        ("own.py", "SET = ['duration_s=1m', 'repetitions=2']\n", "SET duration_s=1m: "),
        ("own.py", "raise ValueError('no testbed')\n", "Processing variable file '"),
    ],
)
def test_wrong_variable_files(tmp_path: Path, refused: Callable[..., str], name: str, text: str, sentence: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    option = "-A" if name.endswith("args") else "-V"
    found = refused(*variables(SIM), option, str(file), str(STUDIES / "chains.robot"))
    assert found.startswith(sentence) and "\n" not in found


def test_suites_of_users_choose_as_robot_lets_them(tmp_path: Path) -> None:
    """Such as by a variable file or a keyword, which is known when the suite runs."""
    suite = tmp_path / "own.robot"
    suite.write_text(OWN_SUITE, encoding="utf-8")
    (tmp_path / "values.py").write_text(f"TOPOLOGY = {SIM.removeprefix('TOPOLOGY:')!r}\n", encoding="utf-8")
    assert run_suites(["-d", str(tmp_path / "run"), "--console", "none", str(suite)]) == 0
    assert 'level="ERROR"' not in (tmp_path / "run" / "output.xml").read_text(encoding="utf-8")


def test_variables_that_no_suite_reads_are_refused_but_for_users(tmp_path: Path, planned: Callable[..., str]) -> None:
    of_density = [each.name for each in read_by("density")]
    for name, near in (("cells", "CELLS"), ("TOPOLOY", "TOPOLOGY"), ("NF_SIZES_OF", "NF_SIZES"), ("CORES", "CELLS")):
        with pytest.raises(ConfigError, match=f"^-v {name}: no such variable; did you mean {near}\\?$"):
            refuse_misspelt([name], (*of_density, "SHARE"))
    with pytest.raises(ConfigError, match=r"^-v X: no such variable; the suites read A, B$"):
        refuse_misspelt(["X"], ["A", "B"])
    refuse_misspelt(["FRAME", "COMMAND", "PABOTQUEUEINDEX", "CALLER_ID", "LAB_TOKEN"], ["FRAME"])
    suite = tmp_path / "own.robot"
    suite.write_text("*** Test Cases ***\nOwn\n    Log    ${FLOW}\n", encoding="utf-8")
    chosen = variables("FLOW:up", "PROFILE:night")
    planned(*chosen, str(suite))
    with pytest.raises(ConfigError, match="-v FLOW: no such variable; did you mean FLOWS"):
        planned(*chosen, SUITE)


def plain_robot(arguments: list[str]) -> int:
    """Run Robot without this project's command line; what it leaves of a run that it refuses is removed."""
    before = [*EXECUTION_CONTEXTS._contexts]
    try:
        return int(run_cli(arguments, exit=False))
    finally:
        EXECUTION_CONTEXTS._contexts[:] = before


@pytest.mark.parametrize(
    ("chosen", "sentence", "source"),
    [
        (["TOPOLOGY:nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory", DENSITY),
        ([SIM, "SET:share=2"], "SET share=2: 2 is above the maximum of 1", OUTAGE),
    ],
)
def test_robot_itself_ends_with_the_sentence_and_runs_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], chosen: list[str], sentence: str, source: str
) -> None:
    assert plain_robot(["-d", str(tmp_path), *variables(*chosen), source]) == 252, "wrong data, as Robot says"
    shown = capfd.readouterr()
    (line,) = [each for each in shown.err.splitlines() if "[ ERROR ]" in each]
    assert line.removeprefix("[ ERROR ] ").startswith(sentence)
    assert not {"FAIL", "PASS", "Traceback"} & set(re.findall(r"\w+", shown.out + shown.err))
    assert not (tmp_path / "results").exists()


def test_help_begins_with_the_variables_of_the_suites(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_suites(["--help"]) == 0
    ours, _, robots = capfd.readouterr().out.partition("Robot Framework -- ")
    assert "./csit robot" in ours and "-v CELLS:" in ours and "--include" in robots


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--resume"], "--resume: expected the folder of a run"),
        (["-v", "X:1", "--resume", "results/a"], "--resume: not an option of Robot Framework; put it first: "),
        (["-v", "X:1", "--resume=results/a"], "--resume: not an option of Robot Framework; put it first: "),
    ],
)
def test_resume_comes_first_and_names_a_folder(words: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^{sentence}"):
        make_app(["robot"])(["robot", *words], standalone_mode=False)


PLANTING = """\
*** Test Cases ***
Plant
    Evaluate    os.symlink(r"${VICTIM}", r"${OUTPUT DIR}/log.html")
    Evaluate    os.symlink(r"${VICTIM}", r"${OUTPUT DIR}/report.html")
"""


def test_robot_follows_no_planted_links(tmp_path: Path) -> None:
    """Another user who may write to the folder of results puts them there before the run, and in it."""
    victim, folder, suite = tmp_path / "victim", tmp_path / "run", tmp_path / "planting.robot"
    folder.mkdir()
    victim.write_text("precious", encoding="ascii")
    suite.write_text(PLANTING, encoding="utf-8")
    for name in ("output.xml", "x.xml"):
        (folder / name).symlink_to(victim)
    assert run_suites(["-d", str(folder), "-x", "x", "-v", f"VICTIM:{victim}", str(suite)]) == 0
    assert victim.read_text(encoding="ascii") == "precious"
    names = ("output.xml", "log.html", "report.html", "x.xml")
    assert all((folder / name).is_file() and not (folder / name).is_symlink() for name in names)


@pytest.fixture(autouse=True)
def _in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


def test_a_text_is_split_once_and_comes_last() -> None:
    text = """-v CELLS:1x1,2x1 --include 'A AND B'\n-e "x $(id) `id`" -vLOSSES:1 --test *;* tests/density tests"""
    assert spread(["robot", "--args", text, "-d", "out; rm"]) == [
        "robot", "-d", "out; rm", "-v", "CELLS:1x1,2x1", "--include", "A AND B", "-e", "x $(id) `id`", "-v", "LOSSES:1",
        "--test", "*;*", "tests/density", "tests",
    ]  # fmt: skip
    night = spread(["night", "--args", "--types CSC --cells 1x1 -v NOISE_FLOOR:0", "lab.yaml", "--hours", "8"])
    assert night == ["night", "lab.yaml", "--hours", "8", "--types", "CSC", "--cells", "1x1", "-v", "NOISE_FLOOR:0"]


@pytest.mark.parametrize(
    "text",
    [
        "tests/density\ntouch stolen",
        "--listener os.system:id tests/density",
        "--argumentfile /etc/passwd",
        "-V values.py tests/density",
        "-d /tmp/elsewhere tests/density",
        "--resume results/night",
        "-v TOPOLOGY:other.yaml tests/density",
        "-v 'OUTPUT DIR:/elsewhere' tests/density",
        "-v OUTPUT_DIR:/elsewhere tests/density",
        "-v COMMAND:{} tests/density",
        "-v SET:contenders.0.program.start=id tests/characterization",
        r"-v 'SET:contenders.0={\"pro\x67ram\": {start: id}}' tests/characterization",
        "/etc/passwd",
        "tests/../../elsewhere",
    ],
)
def test_other_texts_are_refused(text: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["csit", "robot", "--args", text, "--dryrun"])
    assert main() == 2
    shown = capfd.readouterr()
    assert shown.out == "" and len(shown.err.splitlines()) == 1
    assert shown.err.startswith("--args")
    assert not Path("stolen").exists()


def test_a_night_takes_no_suites_and_no_folders_and_other_commands_no_text() -> None:
    for text in ("tests/density", "--data /elsewhere", "-d /elsewhere", "--html page.html", "--hours 99"):
        with pytest.raises(ConfigError, match=r"^--args"):
            spread(["night", "--args", text, "lab.yaml"])
    with pytest.raises(ConfigError, match=r"^--args: an option of robot and night; remove it$"):
        spread(["report", "--args", "x"])


def test_no_secret_is_kept_and_a_run_with_one_can_be_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    variable = command_line.remembered("robot", ["-v", "TOKEN:of-this-test", "--include", "CSC", "tests/density"])
    known = json.loads(variable.removeprefix("COMMAND:"))
    assert known["arguments"] == ["-v", "TOKEN:***", "--include", "CSC", "tests/density"]
    assert redacted("it was of-this-test") == "it was ***"
    header = SimpleNamespace(command="robot", arguments=("-v", "TOKEN:***", "tests/density"), folder=str(tmp_path))
    monkeypatch.setattr(command_line, "header_of", lambda _: header)
    folder = tmp_path / "my run"
    with pytest.raises(ConfigError) as found:
        command_line.again(folder)
    assert f"value for TOKEN: ./csit robot --resume '{folder}' -v 'TOKEN:***' tests/density" in str(found.value)
    given = ["-v", "TOKEN:x", "tests/density"]
    assert command_line.again(folder, given) == ["--variable", f"RESUME:{folder}", *given]
