"""A bisection whose machine goes down in an installation continues after it, with another boot id, clock and /run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.robot_runs import PROJECT, environment

pytestmark = [pytest.mark.parallel, pytest.mark.root]
VERSIONS = [f"1.{number}" for number in range(9)]
DOWN = -9
REBOOTED = """
mount -t tmpfs none /run
mount --bind "$1" /proc/sys/kernel/random/boot_id
shift
exec "$@"
"""
"""What a reboot loses or changes, but for the kernel itself; `unshare` gives another monotonic clock as well."""


def bisect(folder: Path, output: str, *before: str) -> int:
    """Run a bisection that finds no difference; return its status."""
    words = ["-m", "csit_utils", "bisect", str(folder / "spec.yaml"), "-o", str(folder / output)]
    argv = [*before, sys.executable, *words]
    done = subprocess.run(
        argv, cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode in {3, DOWN}, done.stdout + done.stderr
    return done.returncode


def observed(folder: Path) -> list[dict[str, object]]:
    """Steps of the journal, without their durations."""
    rows = [json.loads(line) for line in (folder / "bisection.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{**row, "seconds": 0} for row in rows if "step" in row]


def test_a_bisection_continues_after_a_reboot_as_if_there_had_been_none(tmp_path: Path) -> None:
    install, installed = tmp_path / "install", tmp_path / "installed"
    install.write_text(
        f"""#!/bin/sh
echo $1 >>{installed}
if [ -e {tmp_path}/goes-down ] && [ $(wc -l <{installed}) = 3 ]; then
    rm {tmp_path}/goes-down
    kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)  # above the supervisor
fi
""",
        encoding="utf-8",
    )
    install.chmod(0o755)
    spec = {
        "source": {"versions": VERSIONS}, "install": [str(install), "{revision}"], "cell": "CSC 1x1 1c",
        "topology": str(PROJECT / "topologies" / "sim.yaml"), "change": "2%",
    }  # fmt: skip
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    assert bisect(tmp_path, "whole") == 3
    installed.unlink()
    (tmp_path / "goes-down").touch()
    went_down = bisect(tmp_path, "parts")
    before = observed(tmp_path / "parts")
    assert (went_down, (tmp_path / "goes-down").exists()) == (DOWN, False)
    assert 0 < len(before) < len(observed(tmp_path / "whole"))
    (tmp_path / "boot_id").write_text("01234567-89ab-cdef-0123-456789abcdef\n", encoding="utf-8")
    uptime_s = int(float(Path("/proc/uptime").read_text(encoding="utf-8").split()[0]))
    boot = ("unshare", "--mount", "--time", f"--monotonic={60 - uptime_s}", "--fork")
    assert bisect(tmp_path, "parts", *boot, "sh", "-ec", REBOOTED, "sh", str(tmp_path / "boot_id")) == 3
    assert observed(tmp_path / "parts") == observed(tmp_path / "whole")
    revisions = installed.read_text(encoding="utf-8").split()
    assert revisions[3] == revisions[2]  # again, as an installation that was cut short is none
    assert (tmp_path / "parts" / "bisection.html").exists()
