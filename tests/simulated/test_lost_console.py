"""A run whose console is gone measures and records as any other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from csit_utils.dataset.items import Status
from tests.loaded import load
from tests.simulated.in_process import DENSITY, SIM
from tests.unit.unwritable import unwritable

CHOSEN = ("-v", f"TOPOLOGY:{SIM}", "-v", "CELLS:1x1", "-v", "NF_SIZES:1c", "--log", "NONE", "--report", "NONE")


@pytest.mark.parametrize(
    ("program", "lack"),
    [
        (("csit_utils", "robot"), "full disk"),
        (("csit_utils", "robot"), "closed terminal"),
        (("robot",), "closed pipe"),
    ],
)
def test_a_run_without_its_console_is_recorded(tmp_path: Path, program: tuple[str, ...], lack: str) -> None:
    argv = [sys.executable, "-m", *program, *CHOSEN, "-d", str(tmp_path), str(DENSITY / "csc-mrr.robot")]
    with unwritable(lack) as stream:
        ended = subprocess.run(
            argv, stdout=stream, stderr=stream, env={**os.environ, "PYTHONPATH": str(DENSITY.parents[1])},
            timeout=600, check=False,
        )  # fmt: skip
    assert ended.returncode == 0
    (test,) = load([tmp_path / "output.xml"]).recorded
    assert (test.status, test.message) == (Status.PASS, "")
