"""Archives that guests start from, read by their definition; sockets that answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def unpacked(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Read `newc` by its definition: a header of 13 numbers, the name, the content, each padded to 4 bytes."""
    entries, offset = {}, 0
    while True:
        assert archive[offset : offset + 6] == b"070701"
        fields = [int(archive[offset + 6 + 8 * n : offset + 14 + 8 * n], 16) for n in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[offset + 110 : offset + 110 + name_size - 1].decode()
        begin = (offset + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return entries
        entries[name] = mode, archive[begin : begin + size]
        offset = (begin + size + 3) // 4 * 4


@contextmanager
def answering(path: Path, *answers: bytes) -> Iterator[list[bytes]]:
    """A socket that takes one connection and has prepared answers; yields the questions."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(path))
        there.listen()

        def work() -> None:
            link, _ = there.accept()
            with link:
                for answer in answers:
                    asked.append(link.recv(1000))
                    for begin in range(0, len(answer), 7):  # as a slow guest does
                        link.sendall(answer[begin : begin + 7])

        thread = threading.Thread(target=work, daemon=True)  # a failed test leaves it waiting
        thread.start()
        yield asked
        thread.join(60.0)
