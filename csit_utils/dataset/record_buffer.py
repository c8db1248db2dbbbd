"""Records on their way into a table of details: their texts one after the other, in a buffer that is filled anew."""

import numpy as np
import pyarrow as pa

from csit_utils.dataset.columns import DETAILS

GROUP_ROWS = 64
"""Records that are read at once where one is asked for."""
GROUP_BYTES = 1 << 20
"""Of texts. They are in a processor's cache still when they are written."""


class WaitingDetails:
    """Details that wait to be written together.

    Texts are copied at once, so that their own memory serves for the next one; new memory for all that wait would cost
    more than the copies, since the system clears it page by page.
    """

    def __init__(self) -> None:
        # Memory that is not written to yet is not there yet: a table of few records takes little.
        self._texts = bytearray(GROUP_BYTES + GROUP_BYTES // 4)
        self._ends = [0]
        self._names: list[tuple[str, str, str]] = []

    @property
    def size_bytes(self) -> int:
        """Of the texts that wait."""
        return self._ends[-1]

    @property
    def full(self) -> bool:
        """Whether it is time to write them."""
        return len(self._names) >= GROUP_ROWS or self.size_bytes >= GROUP_BYTES

    def add(self, anchor: str, digest: str, kind: str, text: str | bytes) -> None:
        """Let one more wait; text as bytes is UTF-8."""
        raw = text.encode() if isinstance(text, str) else text
        begin, end = self.size_bytes, self.size_bytes + len(raw)
        if end > len(self._texts):
            # Another one, for Arrow may still hold what it was given.
            larger = bytearray(2 * end)
            larger[:begin] = memoryview(self._texts)[:begin]
            self._texts = larger
        self._texts[begin:end] = raw
        self._ends.append(end)
        self._names.append((anchor, digest, kind))

    def table(self) -> pa.Table | None:
        """Columns of those that wait; None where none does. They are valid until the next is added or cleared."""
        if not self._names:
            return None
        texts = pa.py_buffer(memoryview(self._texts)[: self.size_bytes])
        ends = pa.py_buffer(np.array(self._ends, dtype=np.int32))
        columns = [pa.array(column, pa.string()) for column in zip(*self._names, strict=True)]
        return pa.table(
            [*columns, pa.StringArray.from_buffers(len(self._names), ends, texts)],
            schema=DETAILS,
        )

    def clear(self) -> None:
        """They are written."""
        self._ends = [0]
        self._names.clear()
