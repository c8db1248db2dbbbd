"""Files that a how-to page creates or edits, and transcripts: commands of a page with what they print.

A block of the language `console` is a transcript. A line that begins with `$ ` is a command, which goes on in the next
line after a backslash; the lines below are what it prints on a terminal of 80 columns. Where the page leaves lines out,
a line `...` stands for them. Commands of an HTML comment that begins with `<!-- console` run too, but print nothing: a
page makes by them what its commands read. All commands of a page run one after another in one folder that has the
project's topologies and tests. A command that fails is followed by `$ echo $?`.

`python -m tests.how_to_pages [PAGE...]` writes what the commands print now; of what differs from run to run (times,
durations), the page keeps what it has.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.paths import PROJECT

ADD_A_DRIVER, ADD_A_METRIC, ADD_A_STUDY = (
    PROJECT / "docs" / "how-to" / f"add-a-{what}.md" for what in ("driver", "metric", "study")
)
_FILES = re.compile(r"^`(\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TRANSCRIPT = re.compile(r"^(```console\n|<!-- console\n)(.*?)^(```|-->)$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_LEFT_OUT = "..."
_LINKED = ("topologies", "tests", "resources")
_LONGEST_S = 1800
"""Of a command."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_VARIES = re.compile(
    r"\d{4}-?\d\d-?\d\d(?:[T -]\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?)?(?:Z|\+00:00)?"  # dates and times
    r"|(?<![\d.])\d[\d.,]* (?:ms|s|min|h)\b(?: \d+ (?:s|min)\b)*"  # durations
    r"|(?<![\d.])\d[\d.,]* [kM]B\b"  # sizes of files that have such
    r"| +"  # columns as wide as those
)


def files_of(page: Path) -> dict[str, str]:
    """Texts of the files, by path in the project."""
    return dict(_FILES.findall(page.read_text(encoding="utf-8")))


def write_files_of(page: Path, folder: Path) -> None:
    """Write the files into a folder; none may be there already."""
    for name, text in files_of(page).items():
        target = folder / name
        assert not target.exists(), f"{name} is there already"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def apply_edits_of(page: Path, folder: Path) -> None:
    """Apply the differences that a page has in the place of whole files."""
    edits = "".join(files_of(page).values())
    subprocess.run(["git", "apply", "--unsafe-paths"], cwd=folder, input=edits, text=True, check=True)


def lint(folder: Path, check: Sequence[str], paths: Iterable[str]) -> str:
    """Findings of ruff by the project's own rules; empty when there are none.

    Args:
        folder: A copy of the project, or a part of it.
        check: Command of ruff.
        paths: Files and folders below it.
    """
    ours = 'lint.isort.known-first-party=["csit_utils", "resources", "tests"]'  # also what the folder does not have
    options = ("--config", str(PROJECT / "pyproject.toml"), "--config", ours, "--no-cache", "--quiet")
    argv = [sys.executable, "-m", "ruff", *check, *options, *paths]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def pages_with_transcripts() -> list[Path]:
    """Pages some of whose commands are run."""
    pages = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
    return [page for page in pages if _TRANSCRIPT.search(page.read_text(encoding="utf-8"))]


def rewritten(text: str) -> str:
    """Return the text of a page with what its commands print now, unless only that differs which always does.

    Raises:
        AssertionError: A block has text before its first command, or a command failed and the page does not say so.
    """
    status, shown = 0, ""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in _LINKED:
            (folder / name).symlink_to(PROJECT / name)
        (folder / ".venv").symlink_to(sys.prefix)
        script = folder / "csit"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m csit_utils "$@"\n', encoding="utf-8")
        script.chmod(0o755)

        def run(found: re.Match[str]) -> str:
            nonlocal status, shown
            command, before = found[1], found[2].splitlines()
            assert status == 0 or command == "echo $?", f"exit status {status}:\n{shown}\nbefore {command}"
            status, printed = _run(f"(exit {status}); {command}", folder)
            shown = f"{command}\n{printed}"
            after = _without_middle(printed.splitlines(), before)
            same = _VARIES.sub(" ", "\n".join(after)) == _VARIES.sub(" ", "\n".join(before))
            return "".join(f"{line}\n" for line in (f"$ {command}", *(before if same else after)))

        def transcript(found: re.Match[str]) -> str:
            opening, body, closing = found.groups()
            assert not _COMMAND.sub("", body), f"a transcript begins with '$ ', not with {body[:40]!r}"
            new = _COMMAND.sub(run, body)
            return opening + (body if closing == "-->" else new) + closing

        text = _TRANSCRIPT.sub(transcript, text)
    assert status == 0, f"exit status {status}:\n{shown}"
    return text


def _run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command on a terminal; return its exit status and what the terminal shows, without absolute paths."""
    environment = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "ROBOT_OPTIONS"}}
    environment |= {"PYTHONPATH": str(PROJECT), "TERM": "dumb", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 80))
    argv = ["timeout", str(_LONGEST_S), "sh", "-c", command]
    parts: list[bytes] = []
    with subprocess.Popen(
        argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=end, stderr=end
    ) as process:
        os.close(end)
        with suppress(OSError):  # nothing has the terminal open any more
            while part := os.read(terminal, 1 << 16):
                parts.append(part)
    os.close(terminal)
    text = _ESCAPES.sub("", b"".join(parts).decode()).replace(f"{folder}/", "").replace(f"{PROJECT}/", "")
    lines = (line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n"))
    return process.returncode, "\n".join(lines).strip("\n")


def _without_middle(lines: list[str], before: list[str]) -> list[str]:
    """Leave out the lines between as many first and last ones as the page has."""
    if _LEFT_OUT not in before:
        return lines
    first = before.index(_LEFT_OUT)
    last = len(lines) - (len(before) - first - 1)
    return [*lines[:first], _LEFT_OUT, *lines[last:]] if last > first else lines


def main(arguments: Sequence[str]) -> None:
    """Rewrite pages, all of them where none is named."""
    for page in map(Path, arguments) if arguments else pages_with_transcripts():
        before = page.read_text(encoding="utf-8")
        after = rewritten(before)
        page.write_text(after, encoding="utf-8")
        print(f"{page}: {'as before' if after == before else 'rewritten'}")


if __name__ == "__main__":
    main(sys.argv[1:])
