"""TRex of this machine. Sent to nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for an installation.

    Args:
        arguments: `directory`, where it is.
    """
    directory = Path(arguments["directory"])
    client = directory / "automation/trex_control_plane/interactive/trex"
    found: dict[str, Any] = {
        "directory": str(directory),
        "there": os.access(directory / "t-rex-64", os.X_OK),
        "client": (client / "stl").is_dir(),
        "version": None,
        "problem": None,
    }
    # A release has its version in a file, and in its folder's name.
    for text in (_text(directory / "VERSION"), directory.resolve().name):
        match = re.search(r"v?\d+\.\d+", text or "")
        if found["there"] and match:
            found["version"] = match.group(0)
            break
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
