"""Messages of errors: no secrets, no control characters, and at most 600 characters with path, numbers and reason."""

import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import redaction
from resources.libraries.python.dialogue import LONGEST_ERROR, short
from resources.libraries.python.errors import (
    LONGEST_MESSAGE,
    CommandFailed,
    ConfigError,
    CsitError,
    HostRefused,
    NotReady,
    chain,
    ending_of_shell,
    message,
)
from resources.libraries.python.model.base import error_text


@given(st.lists(st.integers(0, 9), min_size=10, max_size=10))
def test_a_walk_over_causes_meets_each_error_once(causes: list[int]) -> None:
    """An error that is raised from one of its own effects has causes without an end."""
    errors = [CsitError(str(number)) for number in range(10)]
    for error, cause in zip(errors, causes, strict=True):
        error.__cause__ = errors[cause]
    met = list(chain(errors[0], lambda each: each.__cause__))
    assert met[0] is errors[0] and len({id(each) for each in met}) == len(met) <= 10
    assert all(after is before.__cause__ for before, after in pairwise(met))


@given(st.text(max_size=40), st.integers(1, 5000), st.text(max_size=40))
def test_every_message_is_short_and_visible(before: str, times: int, after: str) -> None:
    text = before + after * times
    said = message(text)
    assert len(said) <= LONGEST_MESSAGE
    assert all(letter.isprintable() or letter == "\n" for letter in said)
    assert said == text or len(text) > LONGEST_MESSAGE or not text.replace("\n", "").isprintable()


@pytest.mark.parametrize("bad", ["x" * 100_000, f"'{'a b ' * 25_000}'", f"'{'it, is ' * 90}'"])
def test_the_quoted_input_is_shortened_and_not_the_reason(bad: str) -> None:
    path = f"/srv/{'long/' * 20}lab.yaml:17: nodes.DUT1.cpus"
    said = str(ConfigError(f"{path}: {bad} is no list of CPUs, 33 needed, 28 available"))
    assert said.startswith(f"{path}: {bad[:100]}")
    assert said.endswith("is no list of CPUs, 33 needed, 28 available")
    assert f"({len(bad):,} characters)" in said or len(bad) > 20_000
    assert LONGEST_MESSAGE - 100 < len(said) <= LONGEST_MESSAGE


def test_the_end_of_what_a_command_wrote_is_kept_and_all_of_it_stays_known() -> None:
    error = CommandFailed(["vpp", "-c", "startup.conf"], 1, "loading a plugin\n" * 200 + "no free huge pages")
    assert str(error).startswith("vpp -c startup.conf ended with 1: loading")
    assert str(error).endswith("no free huge pages")
    assert len(error.stderr) > 3000 and len(error.whole) > 3000


def test_a_command_to_copy_stays_whole_where_the_text_is_too_long() -> None:
    command = f"ssh-keyscan 203.0.113.1 >>/srv/{'long/' * 50}known_hosts"
    said = str(
        HostRefused(f"DUT1 is unknown: no file has it (looked in /srv/{'long/' * 90}known_hosts); run ", command)
    )
    assert said.startswith("DUT1 is unknown: no file has it (looked in /srv/") and said.endswith(f"; run {command}")
    assert LONGEST_MESSAGE - 100 < len(said) <= LONGEST_MESSAGE

    endless = str(HostRefused("DUT1 is unknown: ", "\x1b" * 5000))
    assert endless.startswith("DUT1 is unknown: ") and len(endless) <= LONGEST_MESSAGE


def test_secrets_that_become_known_later_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_values", {})
    error = NotReady("login of opensesame", 3.0, "\x1b[2J")
    redaction.keep_secret("opensesame")
    assert str(error) == "login of *** not ready after 3.0 s; last seen: \\x1b[2J"
    redaction._pattern.cache_clear()


@pytest.mark.slow
def test_long_texts_are_shortened_in_linear_time() -> None:
    began_s = time.process_time()
    assert len(message("\x00 " * 20_000_000)) <= LONGEST_MESSAGE
    assert time.process_time() - began_s < 2


def test_a_status_of_a_shell_names_its_signal() -> None:
    names = {0: "", 128: "", 137: " (SIGKILL)", 159: " (SIGSYS)", 255: ""}
    assert {status: ending_of_shell(status) for status in names} == {at: f"ended with {at}{names[at]}" for at in names}


@pytest.mark.parametrize("shown", [lambda text: error_text(ValueError(text)), short])
def test_repeated_errors_keep_their_end_which_names_the_cause(shown: Callable[[str], str]) -> None:
    text = f"{'a word ' * 1000}: no such file"
    said = shown(text)
    assert said.startswith("a word") and said.endswith(": no such file") and len(said) <= LONGEST_ERROR
