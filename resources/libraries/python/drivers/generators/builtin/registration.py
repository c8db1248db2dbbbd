"""Declarations of the built-in generator, one for each way of sending."""

from functools import partial

from resources.libraries.python.model.driver import GeneratorDriver
from resources.libraries.python.model.trial import Protocol

_ours = partial(
    GeneratorDriver,
    label="built-in generator",
    factory="resources.libraries.python.drivers.generators.builtin.driver:make",
    protocols=(Protocol.IP, Protocol.UDP),
    counts_by_port=True,
    suite_word="builtin",
)
DRIVERS = (
    _ours(name="auto"),
    _ours(
        name="xdp",
        missing="resources.libraries.python.drivers.generators.builtin.driver:missing_for_xdp",
        vlan_problem="VLAN devices take no XDP frames",
    ),
    _ours(name="ring"),
)
