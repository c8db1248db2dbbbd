"""Environment variables that describe the whole service to scripts."""

from collections.abc import Mapping


def of_all(addresses: Mapping[str, str]) -> dict[str, str]:
    """Addresses of all components, by variable.

    Args:
        addresses: By instance, `<component>-<number>`, in order.
    """
    rows: dict[str, list[str]] = {}
    for name, address in addresses.items():
        rows.setdefault(name.rpartition("-")[0].upper().replace("-", "_"), []).append(address)
    return {f"CSIT_ADDRESSES_{component}": " ".join(row) for component, row in rows.items()}
