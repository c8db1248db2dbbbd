"""Netlink messages read back."""

from typing import Any

from pyroute2.netlink import nlmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from resources.libraries.python.drivers.host.links.netlink import HEADER_BYTES


def said(body: bytes, kind: type[nlmsg]) -> dict[str, Any]:
    """A body read again: fields and attributes that say something, nested ones by name."""
    length = (HEADER_BYTES + len(body)).to_bytes(4, "little")
    message = kind(length + bytes(HEADER_BYTES - len(length)) + body)
    message.decode()
    fields = spoken(message)
    del fields["header"]
    fields.pop("state", None) if kind is ifinfmsg else None  # a word that pyroute2 makes of the flags
    return fields


def spoken(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    fields = {key: field for key, field in value.items() if key != "attrs" and field}
    return fields | {row[0]: spoken(row[1]) for row in value.get("attrs", ())}
