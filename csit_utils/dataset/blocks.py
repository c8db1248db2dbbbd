"""Blocks of an output.xml, with checks of its bytes."""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

BLOCK_BYTES = 1 << 18
"""Small enough to stay in the CPU cache between two passes."""
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml([^>]*)\?>)?\s*<(/?[^\s>/]*)")
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")


class Blocks:
    """Blocks of a file, up to the first that is refused.

    Args:
        source: Name of the file, for errors.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self.need = BLOCK_BYTES
        """Bytes to read at once."""
        self.damage: list[str] = []
        self.refusal: str | None = None
        """Reason why the rest of the file is not read."""
        self.ascii = True
        """Whether all bytes so far are ASCII, which is faster to check than UTF-8."""

    def read(self, stream: BinaryIO) -> Iterator[bytes]:
        """Yield the blocks."""
        decoder, last, before = codecs.getincrementaldecoder("utf-8")(), b"", 0
        while block := stream.read(self.need):
            if not before:
                self.refusal = self._strange(block)
                if self.refusal:
                    return
            if (at := _declaration(block, last)) is not None:
                self.refusal = f"{self._source}: {_refusal((last + block)[at + len(last) :])}"
                yield block[: max(0, at)]
                return
            self._look(block, decoder, before)
            last, before = block[-1:], before + len(block)
            yield block
        if not before:
            self.damage.append("the file is empty")

    def _look(self, block: bytes, decoder: codecs.IncrementalDecoder, before: int) -> None:
        if (at := block.find(b"\0")) >= 0:
            self.once("NUL bytes", f"NUL bytes from byte {before + at} on")
        self.ascii = self.ascii and block.isascii()
        if self.ascii:
            return
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            decoder.reset()
            self.once("not UTF-8", f"not UTF-8 at about byte {before + error.start}")

    def once(self, key: str, text: str) -> None:
        """Report a kind of damage once; `key` is the start of its text."""
        if not any(each.startswith(key) for each in self.damage):
            self.damage.append(text)

    def _strange(self, head: bytes) -> str | None:
        """Reason why a file is not an output of Robot; None if it may be."""
        found = _FIRST.match(head)
        if found is None or found[2].startswith(b"?"):
            return f"{self._source}: truncated or damaged XML (it does not start with an element)"
        encoding = _ENCODING.search(found[1] or b"")
        if encoding is not None and encoding[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
            return f"{self._source}: encoding {encoding[1].decode()}; Robot Framework writes UTF-8"
        if found[2] == b"robot" or found[2].startswith(b"!") or found.end() == len(head):
            return None
        name = found[2].decode(errors="replace")
        return f"{self._source}: not an output.xml of Robot Framework, starts with <{name}>"


def _declaration(block: bytes, last: bytes) -> int | None:
    """Position of a declaration, comment or CDATA section; -1 if it starts with the byte before the block.

    Robot escapes every `<` that is not its own.
    """
    if b"!" not in block:  # searching for one byte is ten times as fast as for two
        return None
    if last == b"<" and block.startswith(b"!"):
        return -1
    at = block.find(b"<!")
    return at if at >= 0 else None


def _refusal(text: bytes) -> str:
    if text[2:3] in (b"-", b"["):
        return (
            "refused: contains comments or CDATA sections, which Robot Framework does not write; "
            "rewrite it by `rebot --output`"
        )
    return "refused: declares a document type or entities"
