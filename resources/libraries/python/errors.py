"""What can go wrong: one root, few leaves. Callers catch leaves; the command line catches the root."""

from collections.abc import Sequence


class CsitError(Exception):
    """Root of every error this project raises on purpose; its text is one sentence for a person."""


class ConfigError(CsitError):
    """A file or an option is wrong; the text names the file, the line and the path inside it."""


class PlanError(CsitError):
    """What was asked cannot be planned on this system; the text gives what is needed and what is there."""


class ConnectionFailed(CsitError):
    """A node could not be reached."""


class HostRefused(ConnectionFailed):
    """A node shows a host key that is not known, or is revoked: waiting does not help."""


class CommandFailed(CsitError):
    """A command ended with a status other than zero, or was answered by a refusal where there is no status."""

    def __init__(self, argv: Sequence[str], status: int | None, stderr: str) -> None:
        self.argv = tuple(argv)
        self.status = status
        self.stderr = stderr
        said = stderr.strip() or "nothing on stderr"
        how = "was refused" if status is None else f"ended with {status}"
        super().__init__(f"{' '.join(argv)} {how}: {said}")


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
