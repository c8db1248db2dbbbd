"""How many examples a property test takes that says a number of its own: fewer in the default tier."""

from hypothesis import settings

_MANY = 100
"""Examples of `--hypothesis-profile=many`, in which a test takes as many as it says."""


def share(examples: int) -> int:
    """Scale a number of examples as the profile scales those of other tests, to five at least."""
    return max(5, examples * settings().max_examples // _MANY)
