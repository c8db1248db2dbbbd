"""Why a Python of a node did not run one of our programs to its end, in one sentence that says what to do."""

from resources.libraries.python.errors import CommandFailed, CsitError, Unsupported, ending_of_shell

TRACEBACK = "Traceback (most recent call last):"
_NOT_STARTED = (126, 127)
_OLD = ("SyntaxError", "Unknown option", "unknown option", "TabError", "IndentationError")
"""What a Python older than our programs says of them, and one older than 3.4 of its own options."""
_SHELL_ADDS = 128


def python_failure(machine: str, python: str, failed: CommandFailed) -> CsitError:
    """Return the error to raise from a program that ended with a status other than zero; a traceback is a note of it.

    `python`: The Python there, by name or path.
    """
    last = (failed.stderr.strip().splitlines() or ["nothing on stderr"])[-1].strip()
    status = failed.status or 0
    if status in _NOT_STARTED:
        return Unsupported(
            f"{machine}: {python} does not run there ({last}); say access.python where Python 3.11 or newer is"
        )
    if status < 0 or status > _SHELL_ADDS or last.startswith("MemoryError"):
        how = ending_of_shell(_SHELL_ADDS - status if status < 0 else status)
        return CsitError(
            f"{machine}: {python} {how} in the middle of its work, as where memory runs out: look at dmesg there, "
            "free memory, and repeat the command"
        )
    if any(word in last for word in _OLD) or (TRACEBACK not in failed.stderr and "SyntaxError" in failed.stderr):
        return Unsupported(f"{machine}: {python} is too old ({last}); say access.python where Python 3.11 or newer is")
    _, begin, trace = failed.stderr.rpartition(TRACEBACK)
    if begin:
        error = CsitError(f"{machine}: internal error: {last}")
        error.add_note(f"{machine}: {begin}{trace}")
        return error
    return CsitError(
        f"{machine}: {python} ended with {status} ({last}); try there: {python} -I -c 'import json, ssl, ctypes'"
    )
