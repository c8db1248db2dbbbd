"""Runs Robot the way a user does, and looks at what is on the machine before and after."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from resources.libraries.python.model.result import Result

PROJECT = Path(__file__).parents[2]
DENSITY = PROJECT / "tests" / "density"


def argv(output: Path, *options: str, sources: Sequence[Path] = (DENSITY,)) -> list[str]:
    """The command line of a Robot run with its results in `output`."""
    return [sys.executable, "-m", "robot", "--outputdir", str(output), *options, *map(str, sources)]


def run_robot(
    output: Path, *options: str, sources: Sequence[Path] = (DENSITY,), seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run Robot and wait for it."""
    return subprocess.run(
        argv(output, *options, sources=sources),
        cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


def environment() -> dict[str, str]:
    """As a user has it, with the project on Python's path."""
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def results(output: Path) -> list[Result]:
    """Records that a run wrote, in order."""
    lines = (output / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [Result.model_validate_json(line) for line in lines]


def network_state() -> dict[str, set[str]]:
    """Namespaces, links of the root namespace, NAPI kernel threads and generator workers on this machine."""
    processes = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "comm").read_text(encoding="utf-8").strip()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue
            processes[int(entry.name)] = (name, command)
    folder = Path("/run/netns")
    return {
        "namespaces": {entry.name for entry in folder.iterdir()} if folder.is_dir() else set(),
        "links": set(os.listdir("/sys/class/net")),  # noqa: PTH208 (names are wanted)
        "threads": {name for name, _ in processes.values() if name.startswith("napi/cs")},
        "workers": {command for _, command in processes.values() if "generator.ring" in command},
        "mounts": {
            line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if "csit" in line
        },
    }
