"""FD.io CSIT's own topology files: from their form to that of this project.

What such a file does not say gets the defaults of CSIT's density tests: TRex, VPP as vSwitch and in every NF (of a VSC
in the virtual machine), one pair of cables that all instances share, separated by MAC address. Keys of this project
may stand beside CSIT's in the same file, at the top or in a node, and change that; CSIT passes over them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from resources.libraries.python.model.base import Inconsistency, Location
from resources.libraries.python.model.testbed.attachment import NICS
from resources.libraries.python.redaction import command_text

GENERATOR_CORES = 8
"""Cores that TRex sends from, where the file does not say: enough for two ports of 100 Gb/s with 64 B frames."""
_NODE_DEFAULTS: dict[str, dict[str, Any]] = {
    "TG": {"generator": {"driver": "trex", "cores": GENERATOR_CORES}},
    "DUT": {"vswitch": "vpp", "containers": "vpp", "vms": "qemu_vpp"},
}
_ACCESS = {"host": "host", "port": "port", "username": "user", "password": "password"}
"""CSIT's keys of a node by which it is reached, and ours in `access`."""
THEIRS = {ours: theirs for theirs, ours in _ACCESS.items()}
"""CSIT's names of our keys in `access`."""
_LEFT_OUT = ("subtype", "model", "arch", "bus", "cryptodev", "eventdev", "honeycomb")
"""CSIT's keys of a node that are about what this project does not measure."""
_OF_NODES = frozenset({*_ACCESS, *_LEFT_OUT, "priv_key"})
_OF_INTERFACES = ("ip4_address", "name", "vlan", "numvfs")
_REFERENCES = ("env:", "keyring:")
_PLACEHOLDER = re.compile(r"\{\{[^{}\n]*\}\}|\$\{\w+\}")


class Secrets(Enum):
    """Handling of passwords and private keys in a file."""

    REFUSE = "refuse"
    IGNORE = "ignore"
    """Leave them out, for a reader that reaches no node."""
    REFER = "refer"
    """Replace a password by the name of an environment variable, and a key by the name of a file."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A file in the form of this project."""

    data: dict[str, Any]
    """Still to be validated."""
    notes: tuple[str, ...]
    """Keys that were moved, added or left out, a line each; without the secrets."""
    secrets: tuple[str, ...]
    """Places of secrets that were left out or replaced, such as `nodes.TG.password`."""


def placeholder(text: str) -> tuple[str, int] | None:
    """The first placeholder of a template (`{{ name }}` or `${NAME}`) outside comments, and its line."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _PLACEHOLDER.search(line.partition("#")[0]):
            return found[0], number
    return None


def is_csit(data: object) -> bool:
    """Whether a file has CSIT's form: nodes, and metadata that name schemas or have a version below 1."""
    if not isinstance(data, Mapping) or not isinstance(data.get("nodes"), Mapping):
        return False
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping) or "world" in data:
        return False
    version = metadata.get("version")
    return "schema" in metadata or (isinstance(version, float) and version < 1)


def name_of(stem: str) -> str:
    """A testbed's name from that of its file; names have letters, digits and `_.-`, and begin with a letter."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", stem)[:62]
    return name if name[:1].isalpha() else f"t{name}"


def translate(data: Mapping[str, Any], name: str, secrets: Secrets = Secrets.REFUSE) -> Translation:
    """Turn a file of CSIT's form into ours. Nodes and ports keep their names.

    Raises:
        Inconsistency: There is a secret in it that is to be refused, or a generator that is not TRex.
    """
    own = {key: value for key, value in data.items() if key not in {"metadata", "nodes"}}
    rows = {node: row for node, row in data["nodes"].items() if isinstance(row, Mapping)}
    with_secrets = [node for node, row in rows.items() if _is_secret(row) or "priv_key" in row]
    if with_secrets and secrets is Secrets.REFUSE:
        _refuse_secret(("nodes", with_secrets[0]), rows[with_secrets[0]], others=with_secrets[1:])
    notes: list[str] = []
    rows |= _without_secrets({node: rows[node] for node in with_secrets}, name, secrets, notes)
    joined = _links_of_cables(rows)
    nodes = {
        node: _node(node, rows[node], joined, notes) if node in rows else row for node, row in data["nodes"].items()
    }
    ours = {
        "metadata": {"version": 1, "name": name, "description": "read from a topology file of FD.io CSIT"},
        "world": "lab",
        "discriminator": "mac",
        **own,
        "nodes": nodes,
    }
    places = (f"nodes.{node}.{key}" for node in with_secrets for key in _secret_keys(data["nodes"][node]))
    return Translation(ours, tuple(notes), tuple(places))


def _secret_keys(node: Mapping[str, Any]) -> tuple[str, ...]:
    return (*(("password",) if _is_secret(node) else ()), *(("priv_key",) if "priv_key" in node else ()))


def _without_secrets(
    rows: Mapping[str, Mapping[str, Any]], name: str, secrets: Secrets, notes: list[str]
) -> dict[str, dict[str, Any]]:
    """Nodes with references where secrets were, or with nothing there."""
    passwords = {str(row["password"]) for row in rows.values() if _is_secret(row)}
    found = {}
    for node, row in rows.items():
        rest = {key: value for key, value in row.items() if key not in _secret_keys(row)}
        if secrets is Secrets.REFER and _is_secret(row):
            own_name = "" if len(passwords) == 1 else "_" + re.sub(r"[^A-Z0-9]", "_", node.upper())
            variable = f"CSIT_LAB_PASSWORD{own_name}"
            rest["password"] = f"env:{variable}"
            notes.append(f"nodes.{node}.password: not copied; access.password is env:{variable}, a variable to set")
        if secrets is Secrets.REFER and "priv_key" in row:
            own = row.get("access")
            file = f"~/.ssh/{name}-{node}"
            rest["access"] = {"key_file": file, **(own if isinstance(own, Mapping) else {})}
            notes.append(f"nodes.{node}.priv_key: not copied; access.key_file is {file}, where the key has to be")
        found[node] = rest
    return found


def _is_secret(node: Mapping[str, Any]) -> bool:
    password = node.get("password")
    return password is not None and not str(password).startswith(_REFERENCES)


def _refuse_secret(place: Location, node: Mapping[str, Any], others: Sequence[str]) -> NoReturn:
    """Return how to move a secret out of the file, without repeating it."""
    same = f" (the same at {', '.join(others)})" if others else ""
    if _is_secret(node):
        user, host = node.get("username", "USER"), node.get("host", "HOST")
        target = command_text("-p", node.get("port", 22), f"{user}@{host}")
        raise Inconsistency(
            (*place, "password"),
            "a password in a file is refused. Let `./csit convert` write a file without it, or write `password: "
            "env:NAME` for an environment variable or `keyring:SERVICE/USER`; or delete the line and log in by a "
            f"key or SSH agent: `ssh-copy-id {target}`{same}",
        )
    raise Inconsistency(
        (*place, "priv_key"),
        "a private key in a file is refused. Put it into a file that only you can read, and write "
        f"`access: {{key_file: ~/.ssh/NAME}}` in its place; or delete the line and use an SSH agent{same}",
    )


def _links_of_cables(nodes: Mapping[str, Any]) -> set[str]:
    """Links that join two nodes, or two ports of a TG: over those the generator is qualified."""
    ends: dict[str, list[str]] = {}
    for node, row in nodes.items():
        interfaces = row.get("interfaces") if isinstance(row, Mapping) else None
        for interface in (interfaces or {}).values() if isinstance(interfaces, Mapping) else ():
            if isinstance(interface, Mapping):
                ends.setdefault(str(interface.get("link")), []).append(node)
    return {
        link
        for link, owners in ends.items()
        if len(set(owners)) == len(owners) > 1 or (len(owners) > 1 and nodes[owners[0]].get("type") == "TG")
    }


def _node(name: str, row: Mapping[str, Any], joined: set[str], notes: list[str]) -> dict[str, Any]:
    kind, place = str(row.get("type")), f"nodes.{name}"
    if kind == "TG" and row.get("subtype", "TREX") != "TREX":
        raise Inconsistency(("nodes", name, "subtype"), f"generator '{row['subtype']}' is not supported; choose TREX")
    found: dict[str, Any] = {key: row[key] for key in ("type",) if key in row}
    found["access"] = {}  # second, as in the files of this project; interfaces are last
    found |= {key: value for key, value in row.items() if key not in {*_OF_NODES, "interfaces"}}
    for key, default in _NODE_DEFAULTS.get(kind, {}).items():
        if key not in row:
            notes.append(f"{place}.{key}: added, {_shown(default)}")
        given = found.setdefault(key, default)
        if isinstance(default, dict) and isinstance(given, Mapping):
            found[key] = {**default, **given}
    own = row.get("access")
    access = {ours: row[theirs] for theirs, ours in _ACCESS.items() if row.get(theirs) is not None}
    found["access"] = {**access, **own} if isinstance(own, Mapping) else own or access
    if access:
        notes.append(f"{place}: {', '.join(key for key in _ACCESS if row.get(key) is not None)} moved to access")
    if left := [key for key in _LEFT_OUT if key in row]:
        notes.append(f"{place}: left out {', '.join(left)}")
    interfaces = row.get("interfaces")
    if isinstance(interfaces, Mapping):
        found["interfaces"] = {
            port: _interface(interface) if isinstance(interface, Mapping) else interface
            for port, interface in interfaces.items()
            if not isinstance(interface, Mapping) or str(interface.get("link")) in joined
        }
        if alone := [port for port in interfaces if port not in found["interfaces"]]:
            notes.append(f"{place}.interfaces: left out {', '.join(map(str, alone))}, whose links join no other node")
        keys = {key for interface in interfaces.values() if isinstance(interface, Mapping) for key in interface}
        if dropped := [key for key in _OF_INTERFACES if key in keys]:
            notes.append(f"{place}.interfaces: left out {', '.join(dropped)} of each")
    return found


def _shown(value: object) -> str:
    return ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, dict) else str(value)


def _interface(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in row.items() if key not in _OF_INTERFACES}
    for key in ("mac_address", "pci_address"):
        if key in found and not str(found[key] or "").strip("0:- "):  # a place that was never filled in
            del found[key]
    known = NICS.get(str(found.get("model")))
    return {"rate_bps": known.rate_bps, **found} if known else found
