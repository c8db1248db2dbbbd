"""Errors: one root, few leaves. Callers catch leaves; the command line catches the root.

Every message passes `message`, wherever the error is raised and shown: it has no secrets, no control characters, and at
most `LONGEST_MESSAGE` characters.
"""

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

LONGEST_MESSAGE = 600
"""Characters of an error message."""
_SHORTEST_PART = 80
"""Characters that are kept of each word and each quoted input of a message that is too long."""
_MAX_LOOKED_AT = 20_000
"""Characters of a longer text that are looked at, half of them at its end."""
_PART = re.compile(r"(?<!\w)'[^']*'(?!\w)|\S+")
"""Quoted input, or a word such as a path."""
_SHELL_ADDS, _LAST_SIGNAL = 128, 31


def message(text: str, command: str = "") -> str:
    """Return a text as a message may show it: no secrets, control characters visible, `LONGEST_MESSAGE` at most.

    Lines stay lines. The longest words and quoted inputs are shortened first, in their middle, so that path, numbers
    and reason stay; then the middle of the text. A command that ends the message is meant to be copied: it stays whole
    up to two thirds of the message.
    """
    end = shortened(command, LONGEST_MESSAGE * 2 // 3)
    return f"{shortened(text, LONGEST_MESSAGE - len(end))}{end}"


def shortened(text: str, longest: int) -> str:
    """Return a text as `message` does, with another bound."""
    # Few processes ever show an error, and some start in each trial.
    from resources.libraries.python.redaction import redacted  # noqa: PLC0415

    shown = _visible(without_middle(redacted(text), _MAX_LOOKED_AT).replace("\r\n", "\n"))
    if len(shown) <= longest:
        return shown
    most = _longest_part([len(found[0]) for found in _PART.finditer(shown)], longest - len(shown))
    return without_middle(_PART.sub(lambda found: without_middle(found[0], most), shown), longest)


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    letters = (each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text)
    return "".join(letters)


def _longest_part(lengths: Sequence[int], change: int) -> int:
    """Length that the longest parts must have for the sum to change by a negative number; at least `_SHORTEST_PART`."""
    ordered = sorted(lengths, reverse=True)
    for count, (before, following) in enumerate(zip(accumulate(ordered), [*ordered[1:], 0], strict=True), 1):
        most = (before + change) // count
        if most >= max(following, _SHORTEST_PART):
            return most
    return _SHORTEST_PART


def without_middle(text: str, most: int) -> str:
    """Return at most `most` characters of a text: its beginning and, since errors name their cause there, its end."""
    if len(text) <= most:
        return text
    mark = f"… ({len(text):,} characters) …"
    tail = (most - len(mark)) // 3
    return f"{text[: most - len(mark) - tail]}{mark}{text[len(text) - tail :]}"


def chain(error: BaseException, behind: Callable[[BaseException], BaseException | None]) -> Iterator[BaseException]:
    """An error and those behind it, each once: an error raised from one of its own effects has causes without an end.

    `behind`: Returns the error behind another one; None ends the walk.
    """
    seen: list[BaseException] = []
    here: BaseException | None = error
    while here is not None and not any(here is each for each in seen):
        yield here
        seen.append(here)
        here = behind(here)


class CsitError(Exception):
    """Root of every error this project raises on purpose; its text is one sentence for a person."""

    ROBOT_SUPPRESS_NAME = True
    """Robot would put the name of the class before the sentence."""

    def __init__(self, text: str = "", command: str = "") -> None:
        self.command = command
        super().__init__(f"{text}{command}")

    def __str__(self) -> str:
        if not self.command or not self.whole.endswith(self.command):  # args were replaced
            return message(self.whole)
        return message(self.whole.removesuffix(self.command), self.command)

    @property
    def whole(self) -> str:
        """The text before it was shortened, such as all that a command wrote."""
        return super().__str__()


class ConfigError(CsitError):
    """A file or an option is wrong; the text names the file, the line and the path inside it."""


class PlanError(CsitError):
    """The request cannot be planned on this system; the text gives what is needed and what is there."""


class ConnectionFailed(CsitError):
    """A node could not be reached."""


class HostRefused(ConnectionFailed):
    """A node shows a host key that is not known, or is revoked: waiting does not help.

    The text ends with the command that accepts the key, where there is one.
    """


def ending(status: int) -> str:
    """How a process ended, in words: `ended with 3`, `was killed by SIGKILL`.

    `status`: As `subprocess` gives it: negative for a signal.
    """
    return f"ended with {status}" if status >= 0 else f"was killed by {signal_name(-status)}"


def ending_of_shell(status: int) -> str:
    """How a program ended, in words: `ended with 3`, `ended with 137 (SIGKILL)`.

    `status`: As a shell gives it, which adds 128 to the number of a signal.
    """
    number = status - _SHELL_ADDS
    return f"ended with {status}{f' ({signal_name(number)})' if 0 < number <= _LAST_SIGNAL else ''}"


def signal_name(number: int) -> str:
    """Name of a signal; those of real time have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class CommandFailed(CsitError):
    """A command ended with a status other than zero, or was answered by a refusal where there is no status."""

    def __init__(self, argv: Sequence[str], status: int | None, stderr: str) -> None:
        self.argv = tuple(argv)
        self.status = status
        self.stderr = stderr
        output = stderr.strip() or "nothing on stderr"
        how = "was refused" if status is None else ending(status)
        super().__init__(f"{' '.join(argv)} {how}: {output}")


class NotReady(CsitError):
    """A fact that was waited for did not come true in time."""

    def __init__(self, what: str, after_s: float, last_seen: str) -> None:
        self.what = what
        self.after_s = after_s
        self.last_seen = last_seen
        super().__init__(f"{what} not ready after {after_s:.1f} s; last seen: {last_seen}")


class InUse(CsitError):
    """Another run or user has the machine or the testbed; the text names it."""


class Unsupported(CsitError):
    """This system lacks something the test needs; a test that meets it is skipped, not failed."""


class NoTraffic(CsitError):
    """Packets of a service instance do not arrive although every part works: a result."""


class SystemBroken(CsitError):
    """A part of the system under test or of the generator has died, or hangs: what was measured counts for nothing."""


class RunStopped(CsitError):
    """No further test can be run; what was measured until now is kept."""
