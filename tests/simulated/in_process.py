"""Commands of the project in this process, as `./csit` runs them: with its exit status and its two outputs."""

import io
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from csit_utils import cli
from resources.libraries.python.paths import PROJECT

SIM = PROJECT / "topologies" / "sim.yaml"
DENSITY = PROJECT / "tests" / "density"
STUDIES = PROJECT / "tests" / "characterization"
QUIETLY = ("--log", "NONE", "--report", "NONE")
"""Options of Robot: none of its own pages, which no command reads."""


@dataclass(frozen=True)
class Ended:
    status: int
    stdout: str
    stderr: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Lines of `--format json`."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def csit(*words: object) -> Ended:
    """Run a command line to its end, whatever its exit status."""
    out, err = io.StringIO(), io.StringIO()
    streams = {"stdout": out, "stderr": err, "__stdout__": out, "__stderr__": err}  # Robot's console is the last two
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with patch.multiple(sys, argv=["csit", *map(str, words)], **streams):
        try:
            status = cli.main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        finally:
            signal.signal(signal.SIGTERM, on_sigterm)
    return Ended(status, out.getvalue(), err.getvalue())


def passed(*words: object) -> Ended:
    ended = csit(*words)
    assert ended.status == 0, f"{words}: {ended.status}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended


def robot_words(output: Path, topology: Path, *options: str, sources: Sequence[Path] = (DENSITY,)) -> list[str]:
    variables = ("-v", f"TOPOLOGY:{topology}")
    return ["robot", *variables, *QUIETLY, *options, "-d", str(output), *map(str, sources)]


def topology_with(path: Path, **parameters: object) -> Path:
    """Write a copy of the simulated testbed with other parameters of its simulation."""
    rows = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in parameters.items())
    text = SIM.read_text(encoding="utf-8")
    changed = text.replace("  seed: 1\n", rows if "seed" in parameters else f"  seed: 1\n{rows}")
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    return path


def journal(output: Path) -> list[dict[str, Any]]:
    """Complete lines of the journal of a run."""
    lines = (output / "journal.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("}\n")]
