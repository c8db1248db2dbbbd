"""The kernel of guests that apt would fetch on this machine. Sent to nodes."""

from __future__ import annotations

import re
import subprocess
from typing import Any

_WITHIN_S = 30.0


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask apt for packages.

    `arguments`: `kernels`, names of packages, of which the first that is known is taken.
    """
    for name in arguments["kernels"]:
        argv = ["apt-cache", "show", "--no-all-versions", name]
        try:
            shown = subprocess.run(argv, capture_output=True, text=True, timeout=_WITHIN_S, check=False).stdout
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"package": None, "problem": f"apt-cache cannot be asked: {error}"}
        version = re.search(r"^Version: (\S+)", shown, re.MULTILINE)
        if version:
            return {"package": f"{name} {version.group(1)}", "problem": None}
    return {"package": None, "problem": f"apt knows none of {', '.join(arguments['kernels'])}"}
