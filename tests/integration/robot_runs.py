"""Runs Robot the way a user does, and looks at what is on the machine before and after."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.host.waiting import wait_until
from resources.libraries.python.model.result import Result

PROJECT = Path(__file__).parents[2]
DENSITY = PROJECT / "tests" / "density"


def argv(output: Path, *options: str, sources: Sequence[Path] = (DENSITY,)) -> list[str]:
    """The command line of a Robot run with its results in `output`."""
    return [sys.executable, "-m", "robot", "--outputdir", str(output), *options, *map(str, sources)]


def run_robot(
    output: Path, *options: str, sources: Sequence[Path] = (DENSITY,), seconds: float = 900
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
    """Records that a run wrote, in order, those of tests that were cut short included."""
    return [Result.model_validate(row["result"]) for row in events(output) if row.get("result")]


def events(output: Path) -> list[dict[str, Any]]:
    """Lines of a run's journal that are complete."""
    journal = output / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True) if journal.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}\n")]


def network_state() -> dict[str, set[str]]:
    """Namespaces, links of the root namespace, NAPI kernel threads, generator workers and guests on this machine."""
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
        "workers": {command for _, command in processes.values() if _is_worker(command)},
        "mounts": {
            line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if "csit" in line
        },
    }


def wait_for_network_state(before: dict[str, set[str]], seconds: float = 30) -> None:
    """Wait until the machine is as it was: the kernel ends threads and links of a namespace in its own time."""
    wait_until("machine as it was", lambda: _difference(before, network_state()), seconds)


def _difference(before: dict[str, set[str]], now: dict[str, set[str]]) -> str:
    return "; ".join(
        f"{kind}: new {sorted(now[kind] - before[kind])}, gone {sorted(before[kind] - now[kind])}"
        for kind in before
        if now[kind] != before[kind]
    )


def _is_worker(command: str) -> bool:
    return "drivers.generator" in command or command.startswith("qemu-system")


def wait_for_traffic(seconds: float = 120) -> None:
    """Wait until a generator worker of a run is there and sends."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        state = network_state()
        if state["workers"] and "csit-generator" in state["namespaces"]:
            before = sent_packets()
            time.sleep(0.05)
            if sent_packets() > before > 0:
                return
        time.sleep(0.02)
    pytest.fail(f"no traffic within {seconds} s: {network_state()}")


def sent_packets() -> int:
    """Packets that the generator's first port has sent."""
    shown = subprocess.run(
        ["nsenter", "--net=/run/netns/csit-generator", "cat", "/proc/net/dev"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    for line in shown.stdout.splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "csg1p1":
            return int(numbers.split()[8])
    return 0
