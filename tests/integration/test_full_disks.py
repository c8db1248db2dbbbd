"""Commands without space or permission: one sentence with the path, and no half-written file."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.fuzz.targets import STATISTICS
from tests.integration.robot_runs import PROJECT, csit, run_robot
from tests.unit.planning.labs import TWO_NODES

pytestmark = [pytest.mark.parallel, pytest.mark.root]
BISECTION = f"""
source: {{versions: ["1", "2"]}}
install: ["true", "{{revision}}"]
topology: {PROJECT}/topologies/sim.yaml
cell: CSC 1x1 1c
"""
OPENED = """
here=$1 there=$2; shift 2; number=0
for path in $here; do number=$((number + 1)); mkdir "$there/$number"; mount --bind "$path" "$there/$number"; done
for path in $CLOSED; do mount -t tmpfs -o mode=755 tmpfs "$path"; done
number=0
for path in $here; do number=$((number + 1)); mkdir -p "$path"; mount --bind "$there/$number" "$path"; done
cd "$PROJECT"
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""
"""Runs a program as another user, who can reach the project and its Python also where they are in a home folder."""


@pytest.fixture(scope="module")
def results() -> Iterator[Path]:
    """A small simulated run, where every user can read: pytest closes the folder above its own ones."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "run"
        folder.parent.chmod(0o755)
        _simulate(folder)
        (Path(name) / "output").mkdir()
        (Path(name) / "shared").mkdir()
        (Path(name) / "shared").chmod(0o1777)
        (Path(name) / "csit.yaml").write_text(TWO_NODES, encoding="utf-8")
        (Path(name) / "bisection.yaml").write_text(BISECTION, encoding="utf-8")
        (Path(name) / "statistics.csv").write_bytes(STATISTICS)
        yield folder


def _simulate(folder: Path) -> None:
    chosen = ("-v", "TOPOLOGY:topologies/sim.yaml", "-v", "SEARCH:quick", "-v", "CELLS:1x1,2x2", "-v", "NF_SIZES:1c")
    run_robot(folder, *chosen, "--suite", "csc-mrr", "--suite", "csc-ndrpdr", "-i", "64B")


def commands(results: Path, disk: str) -> dict[str, list[str]]:
    output = str(results / "output.xml")
    return {
        "site": ["report", output, "-o", f"{disk}/site"],
        "page": ["report", output, "-o", f"{disk}/page.html"],
        "plan": ["plan", "topologies/sim.yaml", "--cells", "1x1", "--html", f"{disk}/plan.html"],
        "import": ["import", output, "-o", f"{disk}/history"],
        "export": ["export", output, "--uti", "-o", f"{disk}/uti"],
        "packed": ["export", output, "--uti", "--gzip", "-o", f"{disk}/uti"],
        "csv": ["report", output, "-o", f"{results.parent}/shared/{Path(disk).name}.html", "--csv", f"{disk}/csv"],
        "convert": ["convert", str(results.parent / "csit.yaml"), "-o", f"{disk}/lab.yaml", "--force"],
        "night": ["night", "topologies/sim.yaml", "--cells", "1x1", "--data", output, "-o", f"{disk}/night"],
        "bisect": ["bisect", str(results.parent / "bisection.yaml"), "-o", f"{disk}/bisection"],
    }


NAMES = ("site", "page", "plan", "import", "export", "packed", "csv", "convert", "night", "bisect")


def checked(done: subprocess.CompletedProcess[str], disk: str) -> None:
    assert done.returncode in (1, 2), done
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if not line.startswith("planned ")]
    assert disk in sentence and len(sentence) < 600, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_named_and_nothing_is_half_written(results: Path, tmp_path: Path, name: str) -> None:
    disk = str(tmp_path / "disk")
    Path(disk).mkdir()
    script = """
mount -t tmpfs -o size=64k,mode=755 tmpfs "$DISK"
mkdir "$DISK/site" "$DISK/uti"; for name in page.html plan.html lab.yaml; do echo earlier > "$DISK/$name"; done
dd if=/dev/zero of="$DISK/filler" bs=1k 2> /dev/null
"$@"; status=$?
cat "$DISK/page.html" "$DISK/plan.html" "$DISK/lab.yaml"
find "$DISK" -type f \\( -name '*.part' -o -name '*.html' -size 0 \\
    -o -name '*.parquet' -size 0 -o -name '*.arrow' -size 0 -o -name '*.csv' -size 0 \\) | sed s/^/left:/
exit $status"""
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-m", "csit_utils"]
    done = subprocess.run(
        [*argv, *commands(results, disk)[name]],
        cwd=PROJECT, env={**os.environ, "DISK": disk}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    checked(done, disk)
    assert done.stdout.count("earlier") == 3 and "left:" not in done.stdout, done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["show"], ["answer", "--rate", "100kpps"], ["trend", "--all"], ["profile"], ["outcome"],
        ["plan", "topologies/sim.yaml"], ["explain"], ["schema"], ["convert"], ["chains"], ["interference"], ["outage"],
        ["--help"], ["regoal"], ["bisect", "--list"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_full_disk_behind_standard_output_is_named(results: Path, command: list[str]) -> None:
    specs = PROJECT / "tests" / "characterization" / "specs"
    files = {
        **dict.fromkeys(("show", "answer", "trend", "regoal"), results / "output.xml"),
        **{"outcome": results, "convert": results.parent / "csit.yaml", "chains": specs / "chains" / "four-vnfs.yaml"},
        **{"interference": specs / "interference" / "pairs.yaml", "outage": specs / "outage" / "routers.yaml"},
        **{"profile": results.parent / "statistics.csv", "bisect": results.parent / "bisection.yaml"},
    }
    given = [str(files[command[0]])] if command[0] in files else []
    with Path("/dev/full").open("wb") as full:
        done = csit(*command, *given, output=full)
    assert done.returncode == 1, done
    assert done.stderr.splitlines()[-1:] == ["standard output: No space left on device"], done.stderr


def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
    needed = {PROJECT, Path(sys.prefix), Path(sys.base_prefix)}
    closed = {next((each for each in reversed(path.parents) if not each.stat().st_mode & 1), None) for path in needed}
    inside = [path for path in needed if closed.intersection(path.parents) and not needed.intersection(path.parents)]
    environment = {**os.environ, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"CLOSED": " ".join(str(each) for each in closed if each), "PROJECT": str(PROJECT)}
    with TemporaryDirectory() as folder:
        argv = ["unshare", "--mount", "sh", "-ec", OPENED, "sh", " ".join(map(str, inside)), folder, sys.executable]
        return subprocess.run(
            [*argv, "-m", "csit_utils", *arguments],
            env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_without_permission_to_write_is_named(results: Path, name: str) -> None:
    disk = str(results.parent / "output")
    checked(as_nobody(*commands(results, disk)[name]), disk)


def test_unreadable_files_and_folders_are_named_beside_the_good_ones(results: Path) -> None:
    closed, folder = results.parent / "closed.json", results.parent / "folder"
    closed.write_text("{}", encoding="utf-8")
    folder.mkdir(mode=0o700)
    closed.chmod(0)
    done = as_nobody("show", str(results / "output.xml"), str(closed), str(folder))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"{path}: cannot be read: Permission denied" for path in (closed, folder)]
    shown = [line.split("\t")[:2] for line in done.stdout.splitlines()[1:]]
    assert sorted(shown) == [[f"CSC {cell} NF-1c", test] for cell in ("1x1", "2x2") for test in ("MRR", "NDRPDR")]


def test_a_reader_that_has_seen_enough_is_no_message(results: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = csit("show", str(results / "output.xml"), output=write_end)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")
