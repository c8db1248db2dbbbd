"""The generator's worker, which writes down how deep its calls are when the kernel is asked to send.

Frames of this module and of `threading` are not counted; a thread's begin where it was started.
"""

import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from resources.libraries.python.drivers.generators.builtin import worker
from resources.libraries.python.drivers.generators.xdp.bpf import XdpProgram
from resources.libraries.python.drivers.generators.xdp.live_frames import Running

VARIABLE = "PROFILED_WORKER"
"""Of the environment: the file to write to."""
_started_at: list[int] = []


def depth(frame: FrameType | None) -> int:
    """Frames of the project up to here."""
    found = 0
    while frame is not None:
        found += "/resources/libraries/python/" in frame.f_code.co_filename
        frame = frame.f_back
    return found


def _profile(frame: FrameType, event: str, _: Any) -> None:
    if event != "call":
        return
    if frame.f_code is Running.__init__.__code__:
        _started_at.append(depth(frame))
    elif frame.f_code is XdpProgram.run_live.__code__ and _started_at:
        Path(os.environ[VARIABLE]).write_text(str(_started_at[-1] + depth(frame)), encoding="ascii")


if __name__ == "__main__":
    threading.setprofile(_profile)
    sys.setprofile(_profile)
    worker.main()
