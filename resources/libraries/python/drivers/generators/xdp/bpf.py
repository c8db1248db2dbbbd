"""XDP programs, loaded by libbpf from the compiled objects beside this file."""

import ctypes
import errno
import mmap
import os
import signal
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from threading import Thread

from resources.libraries.python.errors import CsitError, Unsupported

OBJECT = Path(__file__).with_name("live_frames.bpf.o")
RECEIVER = Path(__file__).with_name("receiver.bpf.o")
_LIBRARY = "libbpf.so.1"
_SHARED_MAP = b".bss"
_MMAPABLE = 1 << 10
_ATTACH_XDP = 37
_LIVE_FRAMES = 1 << 1
_LOG_BYTES = 1 << 16
_SIGNAL = signal.SIGUSR1
_AGAIN_S = 0.001
FOREVER = -1
"""2^32 - 1 runs: at half a microsecond for a run that sends nothing, more than half an hour."""


class _TestRun(Structure):
    """`struct bpf_test_run_opts` of bpf/bpf.h."""

    _fields_ = (
        ("sz", c_size_t),
        ("data_in", c_char_p),
        ("data_out", c_void_p),
        ("data_size_in", c_uint32),
        ("data_size_out", c_uint32),
        ("ctx_in", c_void_p),
        ("ctx_out", c_void_p),
        ("ctx_size_in", c_uint32),
        ("ctx_size_out", c_uint32),
        ("retval", c_uint32),
        ("repeat", c_int),
        ("duration", c_uint32),
        ("flags", c_uint32),
        ("cpu", c_uint32),
        ("batch_size", c_uint32),
    )


@cache
def _libbpf() -> ctypes.CDLL:
    """Return libbpf with the types of the functions used here.

    Raises:
        Unsupported: It is not installed.
    """
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError as error:
        raise Unsupported(f"{_LIBRARY} is not installed (Debian and Ubuntu: package libbpf1)") from error
    for result, name, *arguments in (
        (c_void_p, "libbpf_set_print", c_void_p),
        (c_void_p, "bpf_object__open", c_char_p),
        (c_int, "bpf_object__load", c_void_p),
        (None, "bpf_object__close", c_void_p),
        (c_void_p, "bpf_object__find_map_by_name", c_void_p, c_char_p),
        (c_int, "bpf_map__set_map_flags", c_void_p, c_uint32),
        (c_int, "bpf_map__set_max_entries", c_void_p, c_uint32),
        (c_uint32, "bpf_map__max_entries", c_void_p),
        (c_uint32, "bpf_map__value_size", c_void_p),
        (c_int, "bpf_map__fd", c_void_p),
        (c_void_p, "bpf_object__find_program_by_name", c_void_p, c_char_p),
        (c_int, "bpf_program__set_log_buf", c_void_p, c_char_p, c_size_t),
        (c_int, "bpf_program__fd", c_void_p),
        (c_int, "bpf_prog_test_run_opts", c_int, POINTER(_TestRun)),
        (c_int, "bpf_link_create", c_int, c_int, c_int, c_void_p),
        (c_int, "bpf_link_update", c_int, c_int, c_void_p),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.libbpf_set_print(None)  # errors are raised here instead
    return library


class XdpProgram:
    """A loaded XDP program, and the memory that it shares with this process."""

    def __init__(self, name: str, built: Path | None = None, entries: Mapping[str, int] | None = None) -> None:
        """Load it.

        `built`: The object, by default that of the sender.
        `entries`: Numbers of entries of its arrays, by name.

        Raises:
            Unsupported: There is no libbpf, or the kernel refused; then the verifier's last line is in the message.
        """
        library, built = _libbpf(), built or OBJECT
        with ExitStack() as stack:
            opened = library.bpf_object__open(bytes(built))
            if not opened:
                raise Unsupported(f"{_LIBRARY} does not open {built.name}: {os.strerror(ctypes.get_errno())}")
            stack.callback(library.bpf_object__close, opened)
            shared = library.bpf_object__find_map_by_name(opened, _SHARED_MAP)
            library.bpf_map__set_map_flags(shared, _MMAPABLE)
            arrays = {}
            for array, count in (entries or {}).items():
                arrays[array] = library.bpf_object__find_map_by_name(opened, array.encode())
                library.bpf_map__set_max_entries(arrays[array], count)
            program = library.bpf_object__find_program_by_name(opened, name.encode())
            log = ctypes.create_string_buffer(_LOG_BYTES)
            library.bpf_program__set_log_buf(program, log, len(log))
            status = library.bpf_object__load(opened)
            if status:
                lines = log.value.decode(errors="replace").strip().splitlines()
                words = [line for line in lines if not line.startswith("processed ")]
                reason = f"{os.strerror(-status)}{f' ({words[-1]})' if words else ''}"
                raise Unsupported(f"the kernel does not load the XDP program: {reason}")
            self._descriptor = library.bpf_program__fd(program)
            self.memory = mmap.mmap(library.bpf_map__fd(shared), library.bpf_map__value_size(shared))
            """The variable `shared`. What the program writes is visible at once, and vice versa."""
            stack.callback(self.memory.close)
            self.arrays: dict[str, mmap.mmap] = {}
            """Likewise, by name."""
            for array, found in arrays.items():
                length = library.bpf_map__max_entries(found) * library.bpf_map__value_size(found)
                self.arrays[array] = mmap.mmap(library.bpf_map__fd(found), -(-length // mmap.PAGESIZE) * mmap.PAGESIZE)
                stack.callback(self.arrays[array].close)
            self._stack = stack.pop_all()

    def run_live(self, frame: bytes, batch: int, times: int = FOREVER) -> None:
        """Run the program for frames of the kernel; each frame goes where the program says. A signal ends it.

        Blocks without the interpreter's lock.

        `frame`: Contents of every frame before the program changes it; its length is the maximum.
        `batch`: Frames between two flushes, in [1, 256].

        Raises:
            Unsupported: The kernel cannot do it.
            CsitError: It broke off.
        """
        options = _TestRun(
            sz=ctypes.sizeof(_TestRun),
            data_in=frame,
            data_size_in=len(frame),
            repeat=times,
            flags=_LIVE_FRAMES,
            batch_size=batch,
        )
        status = _libbpf().bpf_prog_test_run_opts(self._descriptor, byref(options))
        if status == -errno.EINVAL:
            raise Unsupported(f"the kernel runs no XDP live frames of {len(frame)} bytes")
        if status not in (0, -errno.EINTR):
            raise CsitError(f"the kernel broke XDP live frames off: {os.strerror(-status)}")

    def attach(self, interface_index: int) -> int:
        """Attach it to an interface for as long as the returned descriptor is open.

        Raises:
            OSError: The kernel refused.
        """
        link: int = _libbpf().bpf_link_create(self._descriptor, interface_index, _ATTACH_XDP, None)
        if link < 0:
            raise OSError(-link, os.strerror(-link))
        return link

    def replace_at(self, link: int) -> None:
        """Put it in the place of the program that another one's `attach` has attached, without resetting the interface.

        Raises:
            OSError: The kernel refused.
        """
        status = _libbpf().bpf_link_update(link, self._descriptor, None)
        if status:
            raise OSError(-status, os.strerror(-status))

    def close(self) -> None:
        self._stack.close()


def listen() -> None:
    """Let the signal that ends a run be heard without ending the process. From the main thread, once."""
    signal.signal(_SIGNAL, lambda *_: None)


class Running:
    """One call of the kernel, from the making of this object to `wait`."""

    def __init__(self, program: XdpProgram, frame: bytes, batch: int) -> None:
        """Start it.

        `frame`: What every frame is before the program changes it.
        `batch`: Frames between two flushes, in [1, 256].
        """
        self._error: CsitError | None = None

        def work() -> None:
            try:
                program.run_live(frame, batch)
            except CsitError as error:
                self._error = error

        self._thread = Thread(target=work, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether it has stopped, without a call of `end` by an error."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Have the kernel end it after the batch at hand; what it then takes down needs no waiting for."""
        with suppress(ProcessLookupError):
            if self._thread.ident is not None:
                signal.pthread_kill(self._thread.ident, _SIGNAL)

    def wait(self) -> None:
        """End it and wait until it has.

        Raises:
            CsitError: it had broken off.
        """
        while not self.ended:
            self.end()  # again, should it have been on its way into the kernel
            self._thread.join(_AGAIN_S)
        if self._error:
            raise self._error
