"""The study of docs/how-to/add-a-study.md, written as the page says into a copy of the project."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from resources.libraries.python.paths import PROJECT
from tests.how_to_pages import ADD_A_STUDY, write_files_of

SUITE = "tests/characterization/warmup.robot"
_COMMANDS = re.compile(r"^\./csit (.*)$", re.MULTILINE)
_COPIED = ("csit_utils", "resources", "topologies", "tests/characterization")


def commands_of_page() -> Iterator[list[str]]:
    """Arguments of each call of `./csit` in the page's blocks."""
    yield from map(shlex.split, _COMMANDS.findall(ADD_A_STUDY.read_text(encoding="utf-8")))


def project_with_study(folder: Path) -> Path:
    """Copy what runs and reads suites, and add the files of the page and nothing else; return the copy.

    Compiled modules are copied too: the first command would compile all of them. Files that are just being compiled
    have a number behind `.pyc`.
    """
    for name in _COPIED:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc.*"))
    write_files_of(ADD_A_STUDY, folder)
    return folder


def csit_in(project: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A command of the project's copy, which goes on beside the test."""
    return subprocess.Popen(
        [sys.executable, "-m", "csit_utils", *arguments],
        cwd=project, env={**os.environ, "PYTHONPATH": str(project)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def finished_in(project: Path, *arguments: str, seconds: float = 300) -> str:
    """Run a command of the project's copy to its end; return what it wrote."""
    with csit_in(project, *arguments) as command:
        text, _ = command.communicate(timeout=seconds)
        assert command.returncode == 0, f"{' '.join(arguments)}: {text}"
        return text
