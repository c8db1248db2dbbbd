"""End of a process with its parent."""

import ctypes
import os
import signal

from resources.libraries.python.errors import CsitError

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends, however it ends.

    Raises:
        CsitError: the kernel refused.
    """
    if _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        why = os.strerror(ctypes.get_errno())
        raise CsitError(f"the kernel gives no signal at parent's death: {why}")
