"""Arguments of a program of the user's own, and its answers. Pure."""

from collections.abc import Mapping, Sequence

from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.counters import Processed
from resources.libraries.python.model.plan import NfPlan, TapPlan

_PACKETS, _DROPPED = "packets", "dropped"


def names(function: NfPlan | TapPlan) -> dict[str, str]:
    """Words that an argument vector may have, and what they become. A passive NF has one interface: it is both."""
    if isinstance(function, NfPlan):
        return {"{left}": function.left.name, "{right}": function.right.name}
    return {"{left}": function.interface, "{right}": function.interface}


def filled(argv: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """An argument vector with its words replaced, also within an argument."""
    row = list(argv)
    for word, name in words.items():
        row = [argument.replace(word, name) for argument in row]
    return row


def processed(said: str, what: str) -> Processed:
    """The counters that a program prints: lines of `name value`, of which `packets` has to be there.

    Args:
        said: What its command for them printed.
        what: For a person: whose they are.

    Raises:
        CsitError: There are none.
    """
    rows = dict(words for line in said.splitlines() if len(words := line.split()) == 2)
    try:
        dropped = rows.get(_DROPPED)
        return Processed(int(rows[_PACKETS]), None if dropped is None else int(dropped))
    except (KeyError, ValueError) as error:
        last = (said.strip().splitlines() or ["nothing"])[-1][:200]
        raise CsitError(f"{what} printed no counter `{_PACKETS} <number>`; last output: {last}") from error
