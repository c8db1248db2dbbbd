"""A tiny assembler for BPF (RFC 9669), for programs of some hundred instructions. Pure."""

import struct
from dataclasses import dataclass
from typing import Literal

_LD_IMM64, _LDX, _ST, _STX, _ALU, _JMP, _ALU64 = 0x18, 0x61, 0x62, 0x63, 0x04, 0x05, 0x07
_REGISTER = 0x08
_WIDTHS = {1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18}
_ARITHMETIC = {"+": 0x00, "-": 0x10, "*": 0x20, "|": 0x40, "&": 0x50, "<<": 0x60, ">>": 0x70, "^": 0xA0, "=": 0xB0}
_JUMPS = {"==": 0x10, ">": 0x20, ">=": 0x30, "!=": 0x50, "<": 0xA0, "<=": 0xB0}
_CALL, _EXIT, _TO_BIG_ENDIAN = 0x85, 0x95, 0xDC
_PSEUDO_MAP_VALUE = 2
_INSTRUCTION = struct.Struct("=BBhi")


@dataclass(frozen=True, slots=True)
class Register:
    """One of r0 to r10; r6 to r9 outlive calls."""

    number: int


@dataclass(frozen=True, slots=True)
class Word:
    """A number in memory."""

    base: Register
    """Where the offset counts from."""
    offset: int
    width: int
    """1, 2, 4 or 8 bytes."""


R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = (Register(number) for number in range(11))


class Assembler:
    """Collects instructions; jumps go forwards or backwards to labels."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def _add(self, code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> None:
        self._rows.append((code, target | source << 4, offset, value))

    def alu(self, target: Register, operation: str, operand: Register | int) -> None:
        """Unsigned 64-bit arithmetic: `=`, `+`, `-`, `*`, `|`, `&`, `^`, `<<`, `>>`; a number has 32 bits, signed."""
        code = _ALU64 | _ARITHMETIC[operation]
        if isinstance(operand, Register):
            self._add(code | _REGISTER, target.number, operand.number)
        else:
            self._add(code, target.number, value=operand)

    def big_endian(self, target: Register, bits: Literal[16, 32, 64]) -> None:
        """Turn the low bits into network order; the others become 0."""
        self._add(_TO_BIG_ENDIAN, target.number, value=bits)

    def load(self, target: Register, word: Word) -> None:
        """Target = word, zero-extended."""
        self._add(_LDX | _WIDTHS[word.width], target.number, word.base.number, word.offset)

    def store(self, word: Word, operand: Register | int) -> None:
        """Word = operand; a number is a signed 32-bit one."""
        code, base, offset = _WIDTHS[word.width], word.base.number, word.offset
        if isinstance(operand, Register):
            self._add(_STX | code, base, operand.number, offset)
        else:
            self._add(_ST | code, base, 0, offset, operand)

    def jump(self, label: str) -> None:
        """Go to a label."""
        self._jumps.append((len(self._rows), label))
        self._add(_JMP)

    def jump_if(self, left: Register, comparison: str, right: Register | int, label: str) -> None:
        """Go to a label when an unsigned 64-bit comparison holds: `==`, `!=`, `>`, `>=`, `<`, `<=`."""
        self._jumps.append((len(self._rows), label))
        code = _JMP | _JUMPS[comparison]
        if isinstance(right, Register):
            self._add(code | _REGISTER, left.number, right.number)
        else:
            self._add(code, left.number, value=right)

    def label(self, name: str) -> None:
        """Name the next instruction.

        Raises:
            ValueError: the name is taken.
        """
        if name in self._labels:
            raise ValueError(f"two places are called {name}")
        self._labels[name] = len(self._rows)

    def call(self, helper: int) -> None:
        """Call a helper of the kernel by its number: arguments in r1 to r5, its answer in r0."""
        self._add(_CALL, value=helper)

    def exit(self) -> None:
        """Return r0."""
        self._add(_EXIT)

    def map_value(self, target: Register, descriptor: int) -> None:
        """Target = address of the only value of an array map."""
        self._add(_LD_IMM64, target.number, _PSEUDO_MAP_VALUE, value=descriptor)
        self._add(0)

    def assemble(self) -> bytes:
        """The program.

        Raises:
            ValueError: a jump goes to a label that is nowhere.
        """
        rows = list(self._rows)
        for place, label in self._jumps:
            if label not in self._labels:
                raise ValueError(f"there is no place called {label}")
            code, registers, _, value = rows[place]
            rows[place] = (code, registers, self._labels[label] - place - 1, value)
        return b"".join(_INSTRUCTION.pack(*row) for row in rows)
