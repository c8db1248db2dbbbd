"""Buffer of records before they are written to a table of details."""

import numpy as np
import pyarrow as pa

from csit_utils.dataset.columns import DETAILS

GROUP_ROWS = 64
"""Records per row group, which are read together."""
GROUP_BYTES = 1 << 20
"""Size of texts per row group, so that they are still in the CPU cache when written."""


class WaitingDetails:
    """Details that are written together.

    Texts are copied into one buffer: keeping them in new memory would cost
    more than the copies, since the kernel clears it page by page.
    """

    def __init__(self) -> None:
        # Memory is allocated on first write, so a table of few records is small.
        self._texts = bytearray(GROUP_BYTES + GROUP_BYTES // 4)
        self._ends = [0]
        self._names: list[tuple[str, str, str]] = []

    @property
    def size_bytes(self) -> int:
        """Size of the buffered texts."""
        return self._ends[-1]

    @property
    def full(self) -> bool:
        """Whether the buffer should be written."""
        return len(self._names) >= GROUP_ROWS or self.size_bytes >= GROUP_BYTES

    def add(self, anchor: str, digest: str, kind: str, text: str | bytes) -> None:
        """Add a detail; text as bytes is UTF-8."""
        raw = text.encode() if isinstance(text, str) else text
        begin, end = self.size_bytes, self.size_bytes + len(raw)
        if end > len(self._texts):
            # A new buffer, because Arrow may still refer to the previous one.
            larger = bytearray(2 * end)
            larger[:begin] = memoryview(self._texts)[:begin]
            self._texts = larger
        self._texts[begin:end] = raw
        self._ends.append(end)
        self._names.append((anchor, digest, kind))

    def table(self) -> pa.Table | None:
        """Return buffered details as columns, valid until the next change; None without any."""
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
        """Empty the buffer."""
        self._ends = [0]
        self._names.clear()
