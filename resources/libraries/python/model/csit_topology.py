"""FD.io CSIT's own topology files, read as they are: from their form to that of this project.

What such a file does not say gets the defaults of CSIT's density tests: TRex, VPP as vSwitch and in every NF, one pair
of cables that all instances share, told apart by MAC address. Keys of this project may stand beside CSIT's in the same
file, at the top or in a node, and change that; CSIT passes over them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from resources.libraries.python.model.base import Location, Misfit
from resources.libraries.python.model.nics import NICS

GENERATOR_CORES = 8
"""Cores that TRex sends from, where the file does not say: enough for two ports of 100 Gb/s with 64 B frames."""
_NODE_DEFAULTS: dict[str, dict[str, Any]] = {
    "TG": {"generator": {"driver": "trex", "cores": GENERATOR_CORES}},
    "DUT": {"vswitch": "vpp", "containers": "vpp", "vms": "qemu"},
}
_OF_NODES = frozenset(
    {"subtype", "model", "arch", "bus", "cryptodev", "uio_driver", "eventdev", "host", "port", "username", "honeycomb"}
    | {"password", "priv_key"}
)
"""CSIT's keys of a node that are not ours: read for `access`, or about what this project does not measure."""
_OF_INTERFACES = frozenset({"ip4_address", "name", "vlan", "numvfs"})
_NO_MAC = "00:00:00:00:00:00"
_REFERENCES = ("env:", "keyring:")


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


def translate(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """From CSIT's form to ours, as data that is still to be validated. Nodes and ports keep their names.

    Args:
        data: Of the file.
        name: Of the testbed, which the file does not have.

    Raises:
        Misfit: There is a secret in it, or a generator that is not TRex.
    """
    own = {key: value for key, value in data.items() if key not in {"metadata", "nodes"}}
    nodes = data["nodes"]
    rows = {node: row for node, row in nodes.items() if isinstance(row, Mapping)}
    with_secrets = [node for node, row in rows.items() if _is_secret(row) or "priv_key" in row]
    for node in with_secrets[:1]:
        _refuse_secret(("nodes", node), rows[node], others=with_secrets[1:])
    joined = _links_between_nodes(nodes)
    return {
        "metadata": {"version": 1, "name": name, "description": "read from a topology file of FD.io CSIT"},
        "world": "lab",
        "discriminator": "mac",
        **own,
        "nodes": {node: _node(node, row, joined) if isinstance(row, Mapping) else row for node, row in nodes.items()},
    }


def _is_secret(node: Mapping[str, Any]) -> bool:
    password = node.get("password")
    return password is not None and not str(password).startswith(_REFERENCES)


def _refuse_secret(place: Location, node: Mapping[str, Any], others: Sequence[str]) -> NoReturn:
    """Say how to move a secret out, without repeating it."""
    same = f" (the same at {', '.join(others)})" if others else ""
    if _is_secret(node):
        target = f"-p {node.get('port', 22)} {node.get('username', 'USER')}@{node.get('host', 'HOST')}"
        raise Misfit(
            (*place, "password"),
            "a password in a file is refused. Write `password: env:NAME` and put it into that variable of the "
            "environment, or `keyring:SERVICE/USER`; or delete the line and log in by a key or SSH agent: "
            f"`ssh-copy-id {target}`{same}",
        )
    raise Misfit(
        (*place, "priv_key"),
        "a private key in a file is refused. Put it into a file that only you can read, and write "
        f"`access: {{key_file: ~/.ssh/NAME}}` in its place; or delete the line and use an SSH agent{same}",
    )


def _links_between_nodes(nodes: Mapping[str, Any]) -> set[str]:
    """Links that join two nodes. Others (a TG that is cabled to itself for its own tests) carry no service."""
    ends: dict[str, list[str]] = {}
    for node, row in nodes.items():
        interfaces = row.get("interfaces") if isinstance(row, Mapping) else None
        for interface in (interfaces or {}).values() if isinstance(interfaces, Mapping) else ():
            if isinstance(interface, Mapping):
                ends.setdefault(str(interface.get("link")), []).append(node)
    return {link for link, owners in ends.items() if len(set(owners)) == len(owners) > 1}


def _node(name: str, row: Mapping[str, Any], joined: set[str]) -> dict[str, Any]:
    kind = str(row.get("type"))
    if kind == "TG" and row.get("subtype", "TREX") != "TREX":
        raise Misfit(("nodes", name, "subtype"), f"no generator '{row['subtype']}' here; there is TREX")
    found = {key: value for key, value in row.items() if key not in _OF_NODES}
    for key, default in _NODE_DEFAULTS.get(kind, {}).items():
        given = found.setdefault(key, default)
        if isinstance(default, dict) and isinstance(given, Mapping):
            found[key] = {**default, **given}
    own = row.get("access")
    found["access"] = {**_access(row), **own} if isinstance(own, Mapping) else own or _access(row)
    interfaces = row.get("interfaces")
    if isinstance(interfaces, Mapping):
        found["interfaces"] = {
            port: _interface(interface) if isinstance(interface, Mapping) else interface
            for port, interface in interfaces.items()
            if not isinstance(interface, Mapping) or str(interface.get("link")) in joined
        }
    return found


def _access(row: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"host": "host", "port": "port", "username": "user", "password": "password"}
    return {ours: row[theirs] for theirs, ours in keys.items() if row.get(theirs) is not None}


def _interface(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in row.items() if key not in _OF_INTERFACES}
    for key in ("mac_address", "pci_address"):
        if isinstance(found.get(key), str):
            found[key] = found[key].lower()
    if found.get("mac_address") == _NO_MAC:  # a place that was never filled in
        del found["mac_address"]
    known = NICS.get(str(found.get("model")))
    return {"rate_bps": known.rate_bps, **found} if known else found
