"""Transcripts of pages: how what a command prints is compared with what a page shows."""

import pytest

from tests.how_to_pages import rewritten

NOW = "date +%Y-%m-%dT%H:%M:%S"


def page(*lines: str, opening: str = "```console", closing: str = "```") -> str:
    return "\n".join(["# A page", "", opening, *lines, closing, ""])


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (("$ echo 12 pps",), ("$ echo 12 pps", "12 pps")),
        (("$ echo 12 s in all", "9 min 1 s in all"), ("$ echo 12 s in all", "9 min 1 s in all")),
        ((f"$ {NOW}", "2026-01-01T00:00:00"), (f"$ {NOW}", "2026-01-01T00:00:00")),
        (("$ seq 9", "1", "...", "8", "x"), ("$ seq 9", "1", "...", "8", "9")),
        (("$ false", "$ echo $?"), ("$ false", "$ echo $?", "1")),
        (("$ echo a \\", "  b", "c"), ("$ echo a \\", "  b", "a b")),
        (("$ printf 'half\\rwhole\\n'; pwd",), ("$ printf 'half\\rwhole\\n'; pwd", "whole")),
    ],
)
def test_what_differs_is_rewritten_but_times_and_durations(shown: tuple[str, ...], printed: tuple[str, ...]) -> None:
    assert rewritten(page(*shown)).startswith(page(*printed).removesuffix("```\n"))


def test_commands_of_a_comment_run_and_show_nothing() -> None:
    hidden = page("$ echo 5 > number; echo done", opening="<!-- console", closing="-->")
    assert rewritten(hidden + page("$ cat number")) == hidden + page("$ cat number", "5")


@pytest.mark.parametrize("lines", [("$ false",), ("$ false", "$ echo next"), ("no command",)])
def test_a_command_that_fails_unseen_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        rewritten(page(*lines))
