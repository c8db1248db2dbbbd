"""Messages on a terminal: no line is too wide, no word is lost, paths and commands stay whole."""

from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.terminal import shortened, with_command, wrapped

_PATH = "/srv/results/of-a-night/with-a-long-name/csc-ndrpdr/output.xml"


def test_lines_that_are_laid_out_stay_as_they_are() -> None:
    laid_out = ["  indented " * 9, "a\tcolumn " * 9, "\r\x1b[Ka status " * 9, "\x1b[1mbold\x1b[0m " * 9]
    text = "\n".join([*laid_out, "plain words " * 5, ""])
    assert wrapped(text, 40).split("\n") == [
        *laid_out,
        "plain words plain words plain words",
        "  plain words plain words",
        "",
    ]


def test_a_command_to_copy_has_a_line_of_its_own_where_it_does_not_fit() -> None:
    command = f"./csit robot --resume {_PATH}"
    for width in (None, 120):
        assert with_command("resume with", command, width) == f"resume with {command}"
    assert with_command("interrupted; resume with", command, 80) == f"interrupted; resume with\n  {command}"
    assert with_command("two\nlines", "", 80) == "two\nlines"


def test_of_a_line_that_is_rewritten_beginning_and_end_are_shown() -> None:
    line = "csc: test 3 of 4, CSC 1R1C NF-0.5c vSwitch-1c 64B: trial 12, NDR 5.95 .. 5.98 Mpps; about 3 min left"
    assert shortened(line, 80) == "csc: test 3 of 4, CSC … 64B: trial 12, NDR 5.95 .. 5.98 Mpps; about 3 min left"
    assert shortened(line, 200) == line


@given(
    st.lists(st.text("abc/", min_size=1, max_size=60), min_size=1, max_size=30),
    st.integers(40, 120),
    st.integers(0, 39),
)
def test_no_word_is_lost_and_no_line_is_too_wide(words: list[str], width: int, used: int) -> None:
    line = " ".join(words)
    shown = wrapped(line, width, used)
    assert shown.split() == words
    first, *others = shown.split("\n")
    assert used + len(first) <= width or " " not in first
    assert all(len(each) <= width or " " not in each.strip() for each in others)
    assert len(shortened(line, width)) <= width
