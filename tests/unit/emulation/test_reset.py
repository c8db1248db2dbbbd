"""Resets of an emulated machine over the monitor of its QEMU."""

import json
import socket
import threading
from pathlib import Path

import pytest

from resources.libraries.python.emulation.testbed import EmulatedTestbed
from resources.libraries.python.errors import CsitError


def reset(folder: Path, answers: dict[str, dict[str, object]]) -> list[str]:
    """Commands that a monitor received."""
    commands: list[str] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "DUT1.qmp"))
        listening.listen()

        def work() -> None:
            far, _ = listening.accept()
            with far, far.makefile("rwb", buffering=0) as lines:
                version = {"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": ""}
                lines.write(json.dumps({"QMP": {"version": version}}).encode() + b"\n")
                for line in lines:
                    commands.append(json.loads(line)["execute"])
                    for message in ({"event": "RESET"}, answers.get(commands[-1], {"return": {}})):
                        lines.write(json.dumps(message).encode() + b"\n")

        thread = threading.Thread(target=work)
        thread.start()
        try:
            EmulatedTestbed(folder).reset("DUT1")
        finally:
            thread.join(60)
    return commands


def test_a_refused_reset_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match=r"DUT1 of .*: QEMU does not reset it: .*not now"):
        reset(tmp_path, {"system_reset": {"error": {"desc": "not now"}}})
