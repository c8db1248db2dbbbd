"""The entry script: help, the environment that it makes or finds, and what it starts."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
OTHER_UID = 65534

FAKE_PYTHON = """#!/bin/sh
echo "$*" >>"{log}"
case "$*" in
*sys.exit*) exit {too_old} ;;
*'-m venv'*) for last; do :; done; mkdir -p "$last/bin" "$last/lib/python3.11/site-packages"
    cp "$0" "$last/bin/python"; cp "$0" "$last/bin/tox" ;;
*'-m pip'*) exit "${{FAKE_PIP_STATUS:-0}}" ;;
esac
"""


class Entry:
    """A copy of the entry script beside a Python that only writes down what it is asked."""

    def __init__(self, folder: Path, *, too_old: bool = False) -> None:
        self.root = folder / "a project"
        self.log = folder / "log"
        tools = folder / "bin"
        (self.root / "resources").mkdir(parents=True)
        tools.mkdir(parents=True)
        for file in (ROOT / "csit", ROOT / "constraints.txt", *ROOT.glob("requirements*.txt")):
            shutil.copy(file, self.root)
        shutil.copytree(ROOT / "resources" / "tools", self.root / "resources" / "tools")
        for tool in "sh cat cksum dirname readlink flock rm mkdir cp id env true ls".split():  # noqa: SIM905
            where = shutil.which(tool)
            assert where, tool
            (tools / tool).symlink_to(where)
        python = tools / "python3"
        python.write_text(FAKE_PYTHON.format(log=self.log, too_old=int(too_old)), encoding="utf-8")
        python.chmod(0o755)
        self.path = str(tools)

    def run(
        self, *arguments: str, user: int | None = None, cwd: Path = Path("/"), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        self.log.write_text("", encoding="utf-8")
        return subprocess.run(
            [str(self.root / "csit"), *arguments], env={"PATH": self.path, **environment}, cwd=cwd, text=True,
            user=user, group=user, extra_groups=None if user is None else [], capture_output=True, check=False,
        )  # fmt: skip

    @property
    def asked(self) -> str:
        """What the last run asked of Python."""
        return self.log.read_text(encoding="utf-8")


def path_of(environment: Path) -> str:
    """Path of the project that an environment was made for."""
    return (environment / "lib/python3.11/site-packages/csit.pth").read_text(encoding="utf-8").strip()


def one_environment(cache: Path) -> Path:
    (found,) = (cache / "csit").iterdir()
    return found


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    return Entry(tmp_path)


@pytest.mark.parametrize(("arguments", "status"), [(("--help",), 0), (("help",), 0), ((), 2)])
def test_help_teaches_and_installs_nothing(entry: Entry, arguments: tuple[str, ...], status: int) -> None:
    done = entry.run(*arguments)
    assert done.returncode == status
    assert "a small density matrix on this machine" in done.stdout + done.stderr
    assert entry.asked == ""
    assert not (entry.root / ".venv").exists()


def test_the_first_run_installs_and_the_second_does_not(entry: Entry, tmp_path: Path) -> None:
    """Also by a link to the script; not with an old Python."""
    old = Entry(tmp_path / "old", too_old=True).run("plan")
    assert old.returncode == 1 and "needs Python 3.11 or newer" in old.stderr
    first = entry.run("plan", "a b", "--format", "json")
    assert first.returncode == 0
    assert "installing" in first.stderr
    assert "-r " + str(entry.root / "requirements.txt") in entry.asked
    assert entry.asked.splitlines()[-1] == "-m csit_utils plan a b --format json"
    path_file = entry.root / ".venv/lib/python3.11/site-packages/csit.pth"
    assert path_file.read_text(encoding="utf-8").strip() == str(entry.root)
    second = entry.run("plan")
    assert (second.returncode, second.stderr, entry.asked) == (0, "", "-m csit_utils plan\n")
    link = tmp_path / "link"
    link.symlink_to(entry.root / "csit")
    subprocess.run([link, "link"], env={"PATH": entry.path}, check=True, capture_output=True)
    assert entry.asked.endswith("-m csit_utils link\n")
    with (entry.root / "constraints.txt").open("a", encoding="utf-8") as pins:
        pins.write("one-more==1.0\n")
    entry.run("plan")
    assert "-m pip install" in entry.asked, "a pin has changed"


def test_ctrl_c_waits_until_python_has_started(entry: Entry) -> None:
    assert entry.run("plan").returncode == 0
    python = entry.root / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\nwhile read -r line; do echo "$line"; done </proc/$$/status', encoding="ascii")
    blocked = re.search(r"SigBlk: (\w+)", " ".join(entry.run("plan").stdout.split()))
    assert blocked is not None
    assert int(blocked[1], 16) & 1 << signal.SIGINT - 1


def test_a_moved_project_installs_again_and_keeps_what_the_other_path_made(entry: Entry, tmp_path: Path) -> None:
    """It may as well be the same checkout under a second mount, whose first one still uses its environment."""
    entry.run("plan")
    entry.root = entry.root.rename(entry.root.with_name("moved"))
    done = entry.run("plan", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0
    assert "-m venv --clear" in entry.asked
    made = one_environment(tmp_path / "cache")
    assert str(made) in done.stderr
    assert path_of(made) == str(entry.root)
    assert path_of(entry.root / ".venv") == str(entry.root.with_name("a project"))
    again = entry.run("plan", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (again.returncode, again.stderr, entry.asked) == (0, "", "-m csit_utils plan\n")
    entry.root = entry.root.rename(entry.root.with_name("third"))
    assert entry.run("plan", XDG_CACHE_HOME=str(tmp_path / "cache")).returncode == 0
    others = (tmp_path / "cache" / "csit").iterdir()
    assert {path_of(each) for each in others} == {str(entry.root.with_name(name)) for name in ("moved", "third")}


@pytest.mark.parametrize("named", ["venv of mine", "not/yet/there"])
def test_a_variable_names_another_folder(entry: Entry, tmp_path: Path, named: str) -> None:
    for _ in range(2):
        done = entry.run("plan", cwd=tmp_path, CSIT_VENV=named)
        assert done.returncode == 0
    assert entry.asked == "-m csit_utils plan\n"
    assert path_of(tmp_path / named) == str(entry.root)
    assert not (entry.root / ".venv").exists()


@pytest.mark.parametrize("there", ["a file", "an environment of another path"])
def test_a_folder_with_something_else_is_not_emptied(entry: Entry, tmp_path: Path, there: str) -> None:
    named = tmp_path / "named"
    packages = named / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / ("csit.pth" if "path" in there else "theirs.py")).write_text("/another/path\n", encoding="utf-8")
    done = entry.run("plan", CSIT_VENV=str(named), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.returncode, entry.asked) == (1, "")
    assert f"no packages can be installed in {named}, " in done.stderr and done.stderr.count("\n") == 1
    assert len(list(packages.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be two users")
def test_another_user_gets_an_environment_of_their_own() -> None:
    """One that cannot be run, as its Python is below /root, or is out of date; one that is ready is shared."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as home:
        Path(folder).chmod(0o755)
        os.chown(home, OTHER_UID, OTHER_UID)
        entry = Entry(Path(folder))
        entry.log.touch()
        entry.log.chmod(0o666)
        entry.run("plan")
        shared = entry.run("plan", user=OTHER_UID, HOME=home)
        assert (shared.returncode, shared.stderr, entry.asked) == (0, "", "-m csit_utils plan\n")
        (entry.root / ".venv" / "bin" / "python").chmod(0o700)
        for _ in range(2):
            own = entry.run("plan", user=OTHER_UID, HOME=home)
            assert own.returncode == 0
        assert entry.asked == "-m csit_utils plan\n"
        assert path_of(one_environment(Path(home) / ".cache")) == str(entry.root)
        assert path_of(entry.root / ".venv") == str(entry.root)
        nowhere = entry.run("plan", user=OTHER_UID, HOME="/proc/none")
        assert (nowhere.returncode, entry.asked, nowhere.stderr.count("\n")) == (1, "", 1)
        assert "no packages can be installed in /proc/none/.cache/csit/venv-" in nowhere.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be another user")
def test_a_matrix_of_this_machine_needs_root_at_once() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        entry = Entry(Path(folder))
        entry.run("plan")
        entry.log.chmod(0o666)
        done = entry.run("local", user=OTHER_UID)
        assert (done.returncode, entry.asked) == (2, "")
        assert done.stderr.startswith("csit: local needs root ") and done.stderr.count("\n") == 1
        for words in (("-h",), ("--topology", "topologies/sim.yaml"), ("-t", "topologies/sim.yaml")):
            assert entry.run("local", *words, user=OTHER_UID).returncode == 0
            assert entry.asked == f"-m csit_utils local {' '.join(words)}\n"


@pytest.mark.parametrize("command", ["plan", "test"])
def test_an_interrupted_installation_is_made_anew(entry: Entry, command: str) -> None:
    entry.run("plan")
    (entry.root / ".venv" / "requirements.ready").write_text("older pins", encoding="utf-8")
    failed = entry.run(command, FAKE_PIP_STATUS="1")
    assert failed.returncode == 1
    assert "/.venv could not be finished, for the reason above; the next start of csit repeats it\n" in failed.stderr
    assert "csit_utils" not in entry.asked
    assert entry.run(command).returncode == 0
    assert "-m venv --clear" in entry.asked


def test_tests_get_their_tools_on_top_which_build_or_serve_the_site(entry: Entry) -> None:
    entry.run("plan")
    entry.run("test", "-e", "unit")
    assert "-m venv" not in entry.asked and "requirements-dev.txt" in entry.asked
    assert entry.asked.splitlines()[-1] == f"{entry.root}/tests/tiers.py -e unit"
    built = entry.run("docs")
    assert entry.asked == "-m mkdocs build --strict\n"
    assert f"{entry.root}/site-docs/index.html" in built.stderr
    entry.run("docs", "--serve")
    assert entry.asked == "-m mkdocs serve\n"
    assert entry.run("docs", "--open").returncode == 2


def test_other_requirements_come_on_top_none_undoes_another_and_others_than_the_projects_are_refused(
    entry: Entry,
) -> None:
    done = entry.run("setup", "requirements-otgg")
    assert (done.returncode, entry.asked) == (1, "") and done.stderr.startswith("csit: usage: ./csit setup [NAME]")
    entry.run("test")
    entry.run("setup", "requirements-spark")
    assert "-m venv" not in entry.asked and "requirements-spark.txt" in entry.asked
    for name in ("requirements-spark", "requirements-dev", "requirements"):
        assert (entry.run("setup", name).stderr, entry.asked) == ("", "")
    with (entry.root / "requirements-spark.txt").open("a", encoding="utf-8") as pins:
        pins.write("one-more==1.0\n")
    assert entry.run("setup", "requirements-dev").stderr == ""
    entry.run("setup", "requirements-spark")
    assert "-m pip install" in entry.asked and "-m venv" not in entry.asked


def test_a_link_to_another_environment_is_not_followed(entry: Entry, tmp_path: Path) -> None:
    others = tmp_path / "others"
    (others / "bin").mkdir(parents=True)
    (entry.root / ".venv").symlink_to(others)
    done = entry.run("plan", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0
    assert path_of(one_environment(tmp_path / "cache")) == str(entry.root)
    assert list(others.iterdir()) == [others / "bin"]
