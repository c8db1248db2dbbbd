"""Examples of Hypothesis that do not depend on the modules which a process has imported before."""

from hypothesis.internal.conjecture import providers


def ignore_local_constants() -> None:
    """Draw no constants from the source of this project.

    One value in forty is a constant of the modules that are loaded at that moment, also where `derandomize` fixes the
    seed. Examples would change with the tests that ran before in the same process, and with each change of any module.
    Hypothesis has no setting for it. In a version without this name, the assignment is without effect, and
    `tests/unit/test_tiers.py` fails.
    """
    providers.is_local_module_file = lambda _: False  # type: ignore[attr-defined]
