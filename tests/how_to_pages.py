"""Files that a how-to page creates or edits, as it says."""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from resources.libraries.python.paths import PROJECT

ADD_A_DRIVER, ADD_A_METRIC, ADD_A_STUDY = (
    PROJECT / "docs" / "how-to" / f"add-a-{what}.md" for what in ("driver", "metric", "study")
)
_FILES = re.compile(r"^`(\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


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
