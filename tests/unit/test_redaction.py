"""Texts that leave the program: no secrets, no control characters, and messages of at most 600 characters."""

import json
import os
import shlex
import subprocess
import tracemalloc
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python import redaction
from resources.libraries.python.errors import (
    LONGEST_MESSAGE,
    ConfigError,
    CsitError,
    HostRefused,
    NotReady,
    chain,
    message,
)
from resources.libraries.python.model.base import Frozen
from resources.libraries.python.recording.lines import Lines
from resources.libraries.python.redaction import (
    MASK,
    command_text,
    is_secret_name,
    keep_named_secrets,
    keep_secret,
    masked_words,
    outgoing,
    redacted,
    redacted_json,
    redacted_model,
    redacted_words,
    visible,
    visible_json,
)

PHRASE = 'o\'pen "ses&me" <1>'


@pytest.fixture(autouse=True)
def forgetting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No secret of one test is known in another."""
    monkeypatch.setattr(redaction, "_values", {})
    redaction._pattern.cache_clear()
    yield
    redaction._pattern.cache_clear()


@pytest.mark.parametrize(
    "shown", [str, repr, json.dumps, escape, shlex.quote, lambda text: quote(text, safe=""), lambda text: f"<{text}>"]
)
def test_a_secret_is_masked_however_it_is_quoted(shown: object) -> None:
    assert callable(shown)
    text = f"before {shown(PHRASE)} after"
    assert redacted(text) == text
    keep_secret(PHRASE)
    assert "ses" not in redacted(text) and MASK in redacted(text)


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        (["opensesame", "opensesame-2"], "opensesame-2 opensesame", f"{MASK} {MASK}"),
        (["root", "abc"], "root@tg rooted uprooted abc", f"{MASK}@tg rooted uprooted abc"),
        (["-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq\nAB==\n"], "read MIIEpAIBAAKCAQEA7bq", f"read {MASK}"),
    ],
    ids=["one begins another one", "short ones as words, shorter ones not at all", "lines of a key alone"],
)
def test_what_is_masked_of_a_text(secrets: list[str], text: str, shown: str) -> None:
    keep_secret(*secrets)
    assert redacted(text) == shown


def test_variables_with_names_of_secrets_are_masked() -> None:
    secret = ["TOKEN", "lab_password", "Api Key", "DB-PASSPHRASE", "client.secret", "PRIVATE_KEY"]
    others = ["TOPOLOGY", "CELLS", "PWD", "TOKEN_FILE", "SECRET_PATH", "KEYS", "PASS", "SEARCH"]
    assert [name for name in secret + others if is_secret_name(name)] == secret
    keep_named_secrets(
        {"TOKEN": "opensesame", "CELLS": "10x10-cells", "PASSWORDS": {"a": ["hunter22"]}, "SECRET": None}
    )
    assert redacted("opensesame 10x10-cells hunter22 None") == f"{MASK} 10x10-cells {MASK} None"


def test_command_lines() -> None:
    words = ["-v", "TOKEN:opensesame", "-vAPI_KEY:hunter22", "--variable=PASSWORD: str: xy"]
    known = redacted_words([*words, "-v", "CELLS:1x1", "opensesame"])
    assert known == ["-v", f"TOKEN:{MASK}", f"-vAPI_KEY:{MASK}", f"--variable=PASSWORD:{MASK}", "-v", "CELLS:1x1", MASK]
    assert masked_words(known) == [known[1], known[2], known[3], MASK]
    assert redacted("it is hunter22") == f"it is {MASK}"


def test_journals_and_errors_have_no_secrets_and_documents_keep_keys_and_numbers(tmp_path: Path) -> None:
    error = NotReady("login of opensesame", 3.0, "\x1b[2J")
    keep_secret(PHRASE, "123456", "opensesame")
    assert str(error) == "login of *** not ready after 3.0 s; last seen: \\x1b[2J", "also of one that is known later"
    line = json.dumps({"123456": 1234567, "text": "pin 123456", "items": [123456, "123456"]})
    assert json.loads(redacted_json(line)) == {"123456": 1234567, "text": f"pin {MASK}", "items": [123456, MASK]}
    with Lines(tmp_path / "journal.jsonl") as lines:
        lines.add_line(json.dumps({"reason": f"login with {PHRASE} failed"}))
    (written,) = (tmp_path / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(written) == {"reason": f"login with {MASK} failed"}


class Row(Frozen):
    text: str
    rate_pps: float


def test_models() -> None:
    row = Row(text="opensesame", rate_pps=1e400)
    assert redacted_model(row) is row
    keep_secret("opensesame")
    assert redacted_model(Row(text="opensesame", rate_pps=2.5)) == Row(text=MASK, rate_pps=2.5)
    assert redacted_model(row := Row(text="x", rate_pps=2.5)) is row


@given(st.text())
def test_control_characters_are_visible(text: str) -> None:
    shown = outgoing(text)
    assert not any((ord(letter) < 32 and letter not in "\n\t\r") or 127 <= ord(letter) < 160 for letter in shown)
    assert "\r" not in shown.replace("\r\n", "")
    assert outgoing("a\x1b[2J\rb\tc\n\u202ed é 日本\u00a0x") == "a\\x1b[2J\\rb\tc\n\\u202ed é 日本\u00a0x"


@pytest.mark.parametrize("letter", ["\0", "\x7f", "\u202e", "\r"])
def test_millions_of_control_characters_take_little_memory(letter: str) -> None:
    tracemalloc.start()
    shown = outgoing(letter * 1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert shown == outgoing(letter) * 1_000_000
    assert peak < 30_000_000


@pytest.mark.parametrize("name", ["my lab.yaml", "$(reboot)", "it's", "a\nb\tc", "\x1b[2J'\\", "-rf", "é \u202e\r"])
def test_commands_can_be_pasted(name: str) -> None:
    line = command_text("printf", "%s", "--", f"./{name}")
    assert "\n" not in line and "\x1b" not in line
    shell = ["bash", "-c", line]
    done = subprocess.run(shell, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]})
    assert done.stdout.decode() == f"--./{name}"


@given(st.text(max_size=12))
def test_texts_in_json_are_as_visible_as_others(text: str) -> None:
    assert json.loads(visible_json(json.dumps({text: [text, 1]}))) == {visible(text): [visible(text), 1]}


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


def test_a_command_to_copy_stays_whole_where_the_text_is_too_long() -> None:
    command = f"ssh-keyscan 203.0.113.1 >>/srv/{'long/' * 50}known_hosts"
    said = str(
        HostRefused(f"DUT1 is unknown: no file has it (looked in /srv/{'long/' * 90}known_hosts); run ", command)
    )
    assert said.startswith("DUT1 is unknown: no file has it (looked in /srv/") and said.endswith(f"; run {command}")
    assert LONGEST_MESSAGE - 100 < len(said) <= LONGEST_MESSAGE

    endless = str(HostRefused("DUT1 is unknown: ", "\x1b" * 5000))
    assert endless.startswith("DUT1 is unknown: ") and len(endless) <= LONGEST_MESSAGE


def test_of_a_text_without_end_an_error_looks_at_little() -> None:
    text = "\x00 " * 2_000_000
    tracemalloc.start()
    said = message(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(said) <= LONGEST_MESSAGE
    assert peak < len(text) / 4
