"""A virtual machine of a few bytes: `out` and `hlt` in turns, in real mode, on one vCPU that this thread runs.

    python -m tests.integration.kvm_program CYCLES

It says `ready`, waits for a line, runs, and prints what it did as JSON. A cycle is an exit to user space for I/O, some
time there, and an exit for HLT. Without an interrupt controller in the kernel the latter goes to user space too.
"""

import ctypes
import fcntl
import json
import mmap
import os
import struct
import sys
import time
from collections import Counter

KVM = "/dev/kvm"
IO, HLT = 2, 5
"""Reasons of exits to user space, as linux/kvm.h numbers them."""
BUSY_S = 0.0002
"""That this program computes after each exit for I/O."""
_CREATE_VM, _VCPU_MMAP_SIZE, _CREATE_VCPU, _RUN = 0xAE01, 0xAE04, 0xAE41, 0xAE80
_SET_MEMORY, _SET_REGS, _GET_SREGS, _SET_SREGS = 0x4020AE46, 0x4090AE82, 0x8138AE83, 0x4138AE84
_SREGS_BYTES, _MEMORY_BYTES, _CODE_AT = 0x138, 0x10000, 0x1000
_CODE = bytes([0xE6, 0x10, 0xF4, 0xEB, 0xFB])
"""again: out 0x10, al; hlt; jmp again."""
_REASON_AT = 8
"""In `struct kvm_run`."""


class Machine:
    """One vCPU with 64 KiB of memory."""

    def __init__(self) -> None:
        """Make it, ready to run.

        Raises:
            OSError: KVM refuses.
        """
        kvm = os.open(KVM, os.O_RDWR | os.O_CLOEXEC)
        machine = fcntl.ioctl(kvm, _CREATE_VM, 0)
        self._memory = mmap.mmap(-1, _MEMORY_BYTES)
        self._memory[_CODE_AT : _CODE_AT + len(_CODE)] = _CODE
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        fcntl.ioctl(machine, _SET_MEMORY, struct.pack("IIQQQ", 0, 0, 0, _MEMORY_BYTES, place))
        self._vcpu = fcntl.ioctl(machine, _CREATE_VCPU, 0)
        self._state = mmap.mmap(self._vcpu, fcntl.ioctl(kvm, _VCPU_MMAP_SIZE, 0))
        sregs = bytearray(_SREGS_BYTES)
        fcntl.ioctl(self._vcpu, _GET_SREGS, sregs)
        struct.pack_into(
            "QIH", sregs, 0, 0, 0xFFFF, 0
        )  # base, limit and selector of the code segment, which is the first
        fcntl.ioctl(self._vcpu, _SET_SREGS, bytes(sregs))
        registers = [0] * 18
        registers[16:] = _CODE_AT, 2  # instruction pointer, flags
        fcntl.ioctl(self._vcpu, _SET_REGS, struct.pack("18Q", *registers))

    def run(self) -> int:
        """Run until the next exit to user space; return its reason."""
        fcntl.ioctl(self._vcpu, _RUN, 0)
        (reason,) = struct.unpack_from("I", self._state, _REASON_AT)
        return int(reason)


def main(cycles: int) -> None:
    """Run a machine and say what it did."""
    machine = Machine()
    print("ready", flush=True)
    sys.stdin.readline()
    reasons: Counter[int] = Counter()
    away_s = running_s = 0.0
    for _ in range(cycles):
        for wanted in (IO, HLT):
            begin = time.monotonic()
            reason = machine.run()
            running_s += (end := time.monotonic()) - begin
            reasons[reason] += 1
            if reason != wanted:
                raise SystemExit(f"an exit for reason {reason} where {wanted} was due")
            if reason == IO:
                while time.monotonic() - end < BUSY_S:
                    pass
                away_s += time.monotonic() - end
    print(json.dumps({"io": reasons[IO], "hlt": reasons[HLT], "away_s": away_s, "running_s": running_s}), flush=True)
    sys.stdin.readline()  # the thread ends when it has been looked at


if __name__ == "__main__":
    main(int(sys.argv[1]))
