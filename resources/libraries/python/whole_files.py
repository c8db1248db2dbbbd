"""Files that are written as a whole or not at all, also in folders that other users may write to.

Who may write to a folder can put a link there under every name that is known beforehand, and two processes may write
the same file. So a file gets a random name first, under which nothing may exist, and then its own; a link is replaced,
not followed.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from resources.libraries.python.errors import CsitError

_FLAGS = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_THE_KERNEL = (("dev",), ("proc",))
_PART = re.compile(r"\.[0-9a-f]{16}\.part")
_FILE_MODE = 0o666
"""Less what the umask takes."""


def write_whole(path: Path, content: str | bytes, *, sync: bool = True) -> None:
    """Write a file as a whole or not at all; an earlier one stays until then. Devices and pipes are written to.

    `content`: Text is written as UTF-8.

    Raises:
        CsitError: It cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_special(path):  # root would replace /dev/null by a file
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, sync=sync)
    except OSError as error:
        raise CsitError(f"{path}: cannot be written: {error.strerror or error}") from error


def append_to(path: Path, text: str) -> None:
    """Append to a file that exists.

    Raises:
        CsitError: It cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC), "ab") as file:
            file.write(text.encode())
    except OSError as error:
        raise CsitError(f"{path}: cannot be written: {error.strerror or error}") from error


def replace_file(path: Path, data: bytes, *, sync: bool) -> None:
    """Write a file of an existing folder as a whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    with _replacing(path, sync=sync) as file:
        file.write(data)


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to piece by piece, which is there as a whole at the end, or not at all.

    Raises:
        CsitError: It cannot be written.
    """
    try:
        if _is_special(path):
            with path.open("wb") as file:
                yield file
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(path, sync=True) as file:
            yield file
    except OSError as error:
        raise CsitError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _replacing(path: Path, *, sync: bool) -> Iterator[BinaryIO]:
    part = path.with_name(f".{secrets.token_hex(8)}.part")  # as _PART
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_EXCL | _FLAGS, _FILE_MODE), "wb") as file:
        try:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise


def remove_unfinished(folders: Iterable[Path]) -> None:
    """Remove what a killed process has left of files that it was writing, in folders that no other one writes to."""
    for part in (part for folder in folders for part in folder.glob(".*.part")):
        if _PART.fullmatch(part.name):
            with suppress(OSError):
                part.unlink()


def remove_link(path: Path) -> None:
    """Remove a symbolic link under the name of a file that a library will write, which would follow it."""
    if path.is_symlink() and not _is_special(path):
        path.unlink(missing_ok=True)


@contextmanager
def opened(path: Path, mode: int = _FILE_MODE) -> Iterator[int]:
    """Yield the descriptor of a file that is made if missing, and keeps what is in it.

    Raises:
        OSError: It cannot be opened, or it is a link.
    """
    descriptor = os.open(path, os.O_RDWR | _FLAGS, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_special(path: Path) -> bool:
    """Whether it is a device, or a pipe to which root or the present user has given this name."""
    if path.absolute().parts[1:2] in _OF_THE_KERNEL:  # /dev/stdout may lead to a file, and has to stay
        return path.exists()
    try:
        there, named = path.stat(), path.lstat()
    except OSError:
        return False
    ours = {0, os.geteuid()}
    return not (stat.S_ISREG(there.st_mode) or stat.S_ISDIR(there.st_mode)) and {there.st_uid, named.st_uid} <= ours
