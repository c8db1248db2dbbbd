"""Reading of an output.xml block by block, and what is seen of a file by looking at its bytes alone."""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

BLOCK_BYTES = 1 << 18
"""A larger one has left a processor's cache before it is looked at again."""
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml([^>]*)\?>)?\s*<(/?[^\s>/]*)")
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")


class Blocks:
    """Blocks of a file, up to the first that is refused.

    Args:
        source: The file's name, for what is wrong with it.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self.need = BLOCK_BYTES
        """So many bytes are asked for at once."""
        self.damage: list[str] = []
        self.refusal: str | None = None
        """Why nothing more of the file is read."""
        self.ascii = True
        """Whether all bytes so far are, which is found out sooner than what they say in UTF-8."""

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
        """Tell of damage whose like is told once, with the words it starts with."""
        if not any(each.startswith(key) for each in self.damage):
            self.damage.append(text)

    def _strange(self, head: bytes) -> str | None:
        """Why a file is none of Robot's; None where it may be one."""
        found = _FIRST.match(head)
        if found is None or found[2].startswith(b"?"):
            return f"{self._source}: broken off or damaged XML (it does not start with an element)"
        encoding = _ENCODING.search(found[1] or b"")
        if encoding is not None and encoding[1].lower() not in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
            return f"{self._source}: it is in {encoding[1].decode()}; Robot Framework writes UTF-8"
        if found[2] == b"robot" or found[2].startswith(b"!") or found.end() == len(head):
            return None
        name = found[2].decode(errors="replace")
        return f"{self._source}: this is no output.xml of Robot Framework: it starts with <{name}>"


def _declaration(block: bytes, last: bytes) -> int | None:
    """Where a declaration, a comment or a CDATA section begins: -1 with the byte before the block.

    Robot escapes every `<` that is not its own.
    """
    if b"!" not in block:  # one byte is found ten times as fast as two
        return None
    if last == b"<" and block.startswith(b"!"):
        return -1
    at = block.find(b"<!")
    return at if at >= 0 else None


def _refusal(text: bytes) -> str:
    if text[2:3] in (b"-", b"["):
        return (
            "refused: it has comments or CDATA sections, which Robot Framework does not write; "
            "`rebot --output` writes it anew"
        )
    return "refused: it declares a document type or entities, as an attack would"
