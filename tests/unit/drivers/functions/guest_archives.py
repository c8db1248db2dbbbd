"""Archives that guests start from, read by their definition."""


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
