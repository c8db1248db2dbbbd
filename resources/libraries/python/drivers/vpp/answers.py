"""What VPP answers to commands that were done. Its command line has no status: a refusal is text too. Pure."""

import re

from resources.libraries.python.errors import CommandFailed

_DONE = (
    ("create host-interface ", re.compile(r"host-\S+")),
    ("create vhost-user ", re.compile(r"VirtualEthernet\d+/\d+/\d+")),
    ("create bridge-domain ", re.compile(r"bridge-domain \d+")),
    ("set interface default rx-mode ", re.compile(r"Default interface rx-mode set to \w+")),
    ("create sub-interfaces ", re.compile(r"\S+\.\d+")),
)
"""Commands that name what they made. All others that change something are answered with nothing."""
_NOTHING = re.compile("")
_REFUSED = re.compile(r"^(?:[a-z0-9_ -]+: )?(?:unknown (?:input|command|interface)|ambiguous)\b", re.IGNORECASE)


def check(command: str, reply: str) -> None:
    """See whether a command that changes something was done.

    Raises:
        CommandFailed: The reply is another one than that of success.
    """
    expected = next((says for start, says in _DONE if command.startswith(start)), _NOTHING)
    if not expected.fullmatch(reply.strip()):
        raise CommandFailed(("vpp:", command), None, reply or "nothing, where it should name what was made")


def check_shown(command: str, reply: str) -> None:
    """See whether a command that shows something was understood.

    Raises:
        CommandFailed: It was not.
    """
    if _REFUSED.search(reply):
        raise CommandFailed(("vpp:", command), None, reply)
