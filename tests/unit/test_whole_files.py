"""Files written in folders of other users: planted links, several writers, devices and pipes."""

import os
import threading
from pathlib import Path

import pytest

from resources.libraries.python.errors import CsitError
from resources.libraries.python.whole_files import append_to, opened, write_whole

_LETTERS = 200_000


@pytest.mark.parametrize("name", ["page.html", ".page.html.part", "page.part", "page.html.part"])
def test_a_planted_link_is_not_followed(tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept", encoding="ascii")
    (tmp_path / name).symlink_to(victim)
    write_whole(tmp_path / "page.html", "new")
    assert victim.read_text(encoding="ascii") == "kept"
    assert (tmp_path / "page.html").read_text(encoding="ascii") == "new"
    assert not (tmp_path / "page.html").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a link of another user")
def test_a_link_of_another_user_to_a_device_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.symlink_to("/dev/null")
    os.chown(page, 65534, 65534, follow_symlinks=False)
    write_whole(page, "new")
    assert not page.is_symlink()
    assert Path("/dev/null").is_char_device()


def test_devices_and_pipes_stay(tmp_path: Path) -> None:
    write_whole(Path("/dev/null"), "lost")
    assert Path("/dev/null").is_char_device()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_readers_of_a_file_with_two_writers_see_one_of_both_whole(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_whole(page, "a" * _LETTERS)
    ended = threading.Event()

    def write(letter: str) -> None:
        while not ended.is_set():
            write_whole(page, letter * _LETTERS, sync=False)

    writers = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for writer in writers:
        writer.start()
    try:
        seen = [page.read_text(encoding="ascii") for _ in range(100)]
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    assert all(text in ("a" * _LETTERS, "b" * _LETTERS) for text in seen)
    assert os.listdir(tmp_path) == ["page.html"]  # noqa: PTH208 - hidden files too


def test_what_is_appended_or_locked_is_no_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "trace.csv"
    victim.write_text("kept", encoding="ascii")
    link.symlink_to(victim)
    with pytest.raises(CsitError, match=r"trace\.csv: cannot be written"):
        append_to(link, "more")
    with pytest.raises(OSError, match="symbolic links"), opened(link):
        pass
    assert victim.read_text(encoding="ascii") == "kept"


def test_a_failed_write_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(CsitError, match=r"page\.html: cannot be written"):
        write_whole(tmp_path / "page.html", "new")
    assert os.listdir(tmp_path) == ["page.html"]  # noqa: PTH208 - hidden files too
