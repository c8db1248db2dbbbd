"""Collection of the facts of a node, in one round trip."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from pydantic import ValidationError

from resources.libraries.python import driver_registry
from resources.libraries.python.drivers.host.nics import device_users
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.driver import Driver, KernelFeature
from resources.libraries.python.model.testbed.nodes import DutNode, TgNode
from resources.libraries.python.testbed.connection.machine import Connection
from resources.libraries.python.testbed.node.facts import Facts
from resources.libraries.python.testbed.node.node_query import ask_all
from resources.libraries.python.testbed.node.scripts import driver_needs, leftovers, machine, ports

DISKS = ("/tmp", "/var/tmp", "/run", "/dev/shm")  # noqa: S108 - their free space is of interest
"""Runtimes of agents and cores of programs, records, sockets and shared memory are there."""


def questions(node: TgNode | DutNode) -> dict[Any, dict[str, Any]]:
    """Facts to ask of a node of a topology."""
    every = (each for driver in drivers_of(node) for each in driver.programs if each.version is not None)
    programs = {each.name: each for each in every}.values()
    checks = {import_module(each.script): each.arguments(node) for each in driver_registry.node_checks()}
    return {
        ports: {"ports": named_ports(node)},
        device_users: {"devices": {each.pci_address: None for each in node.interfaces.values() if each.pci_address}},
        driver_needs: {
            "programs": {each.on(node): each.version for each in programs},
            "kernel": {each.label: (each.config, each.module) for each in kernel_features_of(node)},
        },
        leftovers: {},
        machine: {"disks": DISKS},
        **{module: dict(arguments) for module, arguments in checks.items() if arguments is not None},
    }


def named_ports(node: TgNode | DutNode) -> dict[str, dict[str, str | None]]:
    """The ports of a node that are to be found by their kernel names or PCI addresses, as in `scripts.ports`."""
    return {
        name: {"device": port.device, "pci_address": port.pci_address}
        for name, port in node.interfaces.items()
        if port.device or port.pci_address
    }


def drivers_of(node: TgNode | DutNode) -> list[Driver]:
    """The drivers that a node can have."""
    if isinstance(node, TgNode):
        return [driver_registry.generators()[node.generator.driver]]
    kinds = (*node.offered, *([node.vms] if node.vms is not None else []))
    return [driver_registry.vswitches()[node.vswitch], *(driver_registry.functions()[kind] for kind in kinds)]


def kernel_features_of(node: TgNode | DutNode) -> dict[KernelFeature, list[Driver]]:
    """Features of the kernel that they need with the node's settings, each with those that need it."""
    found: dict[KernelFeature, list[Driver]] = {}
    for driver in drivers_of(node):
        for feature in driver.kernel:
            if feature.when(node):
                found.setdefault(feature, []).append(driver)
    return found


def gather(
    connection: Connection, nodes: Iterable[TgNode | DutNode], python: str = "python3", *, root: bool = True
) -> Facts:
    """Ask a machine in one round trip for all that may matter.

    `nodes`: What it is in the topology; both nodes where one machine has all of it.

    Raises:
        CsitError: It cannot be asked, or the answer is not of this version.
    """
    asked: dict[Any, dict[str, Any]] = {}
    for node in nodes:
        for module, arguments in questions(node).items():
            known = asked.setdefault(module, {})
            for key, value in arguments.items():
                both = isinstance(value, dict) and isinstance(known.get(key), dict)
                known[key] = {**known[key], **value} if both else value
    node_answers = ask_all(connection, asked, python=python, within_s=60.0, root=root)
    answers = dict(node_answers.by_program)
    keys = [each.key for each in driver_registry.node_checks() if each.key in answers]
    try:
        return Facts.model_validate(
            {
                "packages": {key: answers.pop(key) for key in keys},
                **answers,
                "clock_offset_s": node_answers.clock_offset_s,
                "clock_error_s": node_answers.clock_error_s,
                "round_trip_s": node_answers.round_trip_s,
            }
        )
    except ValidationError as error:
        raise CsitError(f"{connection.name}: {python} answered with something else: {error_text(error)}") from error
