"""Programs that pack result files, by the ending of what they make."""

import gzip
import lzma
from collections.abc import Callable, Mapping

import pyarrow


def _zstandard(content: bytes) -> bytes:
    """With a checksum and without the length, as `zstd` packs what it reads from a pipe."""
    made = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(made, "zstd") as packed:
        packed.write(content)
    return bytes(made.getvalue())


PACKERS: Mapping[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": _zstandard}
