"""`./csit bisect` with real packets: a slow commit in the history of a forwarder that is built from each commit.

One bisection by default; `CSIT_BISECTIONS=3` runs three, each with another history.
"""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from resources.libraries.python.paths import PROJECT
from tests.builders import git
from tests.integration.user_space import machine_stays_as_it_was

pytestmark = [pytest.mark.root, pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")]
COMMITS = 12
BISECTIONS = int(os.environ.get("CSIT_BISECTIONS", "1"))
SOURCE = Path(__file__).with_name("data") / "forwarder.c"
SLOW_NS = 150_000
"""Time that the slow commit spends on a packet: it forwards less than 7 kpps, however fast the CPU is."""
INSTALL = """git -C history show "$1:forwarder.c" >forwarder.c
  gcc -O2 -o forwarder.new forwarder.c
  mv forwarder.new forwarder"""
SPEC = """
source: {git: history, good: first, bad: last}
install:
- sh
- -ec
- |
  @INSTALL@
- install
- '{revision}'
topology: @TOPOLOGY@
cell: CSC 1x1 1c
nf_kinds: process
program: {start: [@FOLDER@/forwarder, '{left}', '{right}']}
metric: forwarded
load_pps: 9000
trial_s: 0.5
change: 10%
"""


def made_history(folder: Path, slow: int, broken: int) -> list[str]:
    """Commit a forwarder that is slow from a commit on, and cannot be compiled in another."""
    folder.mkdir()
    git(folder, "init", "-q")
    text = SOURCE.read_text(encoding="utf-8")
    commits = []
    for number in range(COMMITS):
        changed = text.replace("count < 64", f"count < {64 + number}")  # changes nothing that can be measured
        if number >= slow:
            changed = changed.replace("work_ns = 0", f"work_ns = {SLOW_NS}")
        if number == broken:
            changed += "#error unfinished\n"
        (folder / "forwarder.c").write_text(changed, encoding="utf-8")
        git(folder, "add", "forwarder.c")
        git(folder, "commit", "-q", "-m", f"Change {number} of the forwarder")
        commits.append(git(folder, "rev-parse", "HEAD"))
    git(folder, "tag", "first", commits[0])
    git(folder, "tag", "last", commits[-1])
    return commits


@pytest.mark.parametrize("seed", range(BISECTIONS))
def test_the_slow_commit_of_a_forwarder_is_found(tmp_path: Path, seed: int) -> None:
    slow = random.Random(seed).randrange(2, COMMITS - 1)
    broken = (slow + COMMITS // 2) % (COMMITS - 2) + 1
    commits = made_history(tmp_path / "history", slow, -1 if broken in (slow, slow - 1) else broken)
    words = {"INSTALL": INSTALL, "TOPOLOGY": str(PROJECT / "topologies" / "local.yaml"), "FOLDER": str(tmp_path)}
    spec = SPEC
    for word, value in words.items():
        spec = spec.replace(f"@{word}@", value)
    (tmp_path / "forwarder.yaml").write_text(spec, encoding="utf-8")
    argv = [str(PROJECT / "csit"), "bisect", str(tmp_path / "forwarder.yaml"), "-o", str(tmp_path / "results")]
    with machine_stays_as_it_was("forwarder"):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results" / "bisection.json").read_text(encoding="utf-8"))
    assert (found["answer"], found["culprits"][0]["revisions"]) == ("culprit", [commits[slow]]), done.stderr
    assert found["probability"] >= 0.99
    assert commits[slow][:12] in (tmp_path / "results" / "bisection.html").read_text(encoding="utf-8")
    assert len(found["revisions"]) < COMMITS
