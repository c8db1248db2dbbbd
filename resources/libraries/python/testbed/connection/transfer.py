"""Files through a program's standard input and output: it works as root too, and needs no second protocol."""

import os
import tempfile
from pathlib import Path, PurePosixPath

_SLOWEST_BYTES_PER_S = 1_000_000
_RECEIVE = (
    'umask 077; target=$1 mode=$2 size=$3; part=$(mktemp "$target.XXXXXX") || exit 1; '
    "trap 'rm -f \"$part\"' EXIT; "
    # What is cut off by the end of a connection looks like a whole file to `cat`.
    'cat >"$part" && [ "$(wc -c <"$part")" -eq "$size" ] && chmod "$mode" "$part" && mv -fT "$part" "$target"'
)


def receiving(target: PurePosixPath, mode: int, size_bytes: int) -> list[str]:
    """The program that makes a file of what it reads."""
    return ["sh", "-c", _RECEIVE, "sh", str(target), f"{mode:o}", str(size_bytes)]


def sending(source: PurePosixPath) -> list[str]:
    """The program that writes a file out."""
    return ["cat", "--", str(source)]


def within_s(size_bytes: int) -> float:
    """How long it may take, in seconds."""
    return 60.0 + size_bytes / _SLOWEST_BYTES_PER_S


def save(content: bytes, target: Path) -> None:
    """Write a file here; it appears under its name only when it is whole."""
    descriptor, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
