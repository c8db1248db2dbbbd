"""The `bpf` system call: a map that we see as memory, a program, and running it. No library is needed for that."""

import ctypes
import errno
import mmap
import os
import platform
import struct
from ctypes import addressof, create_string_buffer

from resources.libraries.python.errors import CsitError, Unsupported

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "ppc64le": 361, "s390x": 351}
_MAP_CREATE, _PROG_LOAD, _PROG_TEST_RUN, _LINK_CREATE = 0, 5, 10, 28
_ARRAY, _MMAPABLE = 2, 1 << 10
_PROG_TYPE_XDP, _ATTACH_XDP = 6, 37
_LIVE_FRAMES = 1 << 1
_LOG_BYTES = 1 << 16
FOREVER = 0xFFFFFFFF
"""At half a microsecond for a run that sends nothing, more than half an hour."""

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def _bpf(command: int, attributes: bytes) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise Unsupported(f"the number of the bpf system call on {platform.machine()} is not known here")
    buffer = create_string_buffer(attributes, len(attributes))
    status = _syscall(ctypes.c_long(number), ctypes.c_long(command), buffer, ctypes.c_long(len(attributes)))
    if status < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(status)


class SharedMemory:
    """An array map of one value, mapped into this process. What the program writes is seen at once, and vice versa."""

    def __init__(self, size: int) -> None:
        """Make it.

        Args:
            size: in bytes; rounded up to whole pages.

        Raises:
            Unsupported: the kernel refused.
        """
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            self.descriptor = _bpf(_MAP_CREATE, struct.pack("=5I", _ARRAY, 4, size, 1, _MMAPABLE))
        except OSError as error:
            raise Unsupported(f"the kernel makes no BPF map: {error.strerror}") from error
        self.memory = mmap.mmap(self.descriptor, size)

    def close(self) -> None:
        self.memory.close()
        os.close(self.descriptor)


class XdpProgram:
    """A loaded XDP program."""

    def __init__(self, code: bytes) -> None:
        """Load it.

        Args:
            code: instructions.

        Raises:
            Unsupported: the kernel refused; the last line of its verifier's log is in the text.
        """
        instructions = create_string_buffer(code, len(code))
        license_name = create_string_buffer(b"")
        log = create_string_buffer(_LOG_BYTES)
        head = (_PROG_TYPE_XDP, len(code) // 8, addressof(instructions), addressof(license_name))

        def attributes(level: int) -> bytes:
            logging = (level, _LOG_BYTES, addressof(log)) if level else (0, 0, 0)
            return struct.pack("=IIQQIIQII16sII", *head, *logging, 0, 0, b"csit_generator", 0, _ATTACH_XDP)

        try:
            self.descriptor = _bpf(_PROG_LOAD, attributes(0))
        except OSError as error:
            lines = []
            if error.errno not in (errno.EPERM, errno.ENOSYS):
                try:
                    os.close(_bpf(_PROG_LOAD, attributes(1)))
                except OSError:
                    lines = log.value.decode(errors="replace").strip().splitlines()
            words = [line for line in lines if not line.startswith("processed ")]
            reason = f"{error.strerror}{f' ({words[-1]})' if words else ''}"
            raise Unsupported(f"the kernel does not load the XDP program: {reason}") from error

    def run_live(self, frame: bytes, batch: int, times: int = FOREVER) -> None:
        """Run the program for frames of its own; each frame goes where the program says. A signal ends it.

        Blocks without the interpreter's lock. The kernel needs 20 ms to take down what it has set up for it.

        Args:
            frame: what every frame is before the program changes it; its length is the longest there is.
            batch: frames between two flushes, in [1, 256].
            times: how often.

        Raises:
            Unsupported: the kernel cannot do it.
            CsitError: it broke off.
        """
        data = create_string_buffer(frame, len(frame))
        attributes = struct.pack(
            "=IIIIQQIIIIQQIII",
            *(self.descriptor, 0, len(frame), 0, addressof(data), 0, times, 0),
            *(0, 0, 0, 0, _LIVE_FRAMES, 0, batch),
        )
        try:
            _bpf(_PROG_TEST_RUN, attributes)
        except InterruptedError:
            return
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise Unsupported(f"the kernel runs no XDP live frames of {len(frame)} bytes") from error
            raise CsitError(f"the kernel broke XDP live frames off: {error.strerror}") from error

    def attach(self, interface_index: int) -> int:
        """Attach it to an interface for as long as the returned descriptor is open.

        Raises:
            OSError: the kernel refused.
        """
        return _bpf(_LINK_CREATE, struct.pack("=4I", self.descriptor, interface_index, _ATTACH_XDP, 0))

    def close(self) -> None:
        os.close(self.descriptor)
