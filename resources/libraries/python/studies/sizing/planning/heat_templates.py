"""Templates of OpenStack Heat, one per deployment size.

The local world passes facts to the install script by its environment, OpenStack by cloud-init: the same
variables, with addresses that Heat fills in. All instances come up at once: a script has to wait for what it needs.
"""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import content_of
from resources.libraries.python.model.service.load import Specifications
from resources.libraries.python.model.service.spec import Size, name_of
from resources.libraries.python.rendering import render
from resources.libraries.python.studies.sizing.planning import instance_names
from resources.libraries.python.whole_files import write_whole

_TEMPLATE = "heat/size.yaml.j2"
_MAX_USER_DATA = 65_535
"""Bytes that Nova takes, in base64."""
_MAX_BYTES = _MAX_USER_DATA * 3 // 4
_NOT_SENT = ".json"
"""Specifications lie beside scripts, and no script needs them."""


def heat_template(asked: Specifications, size: Size) -> str:
    """The template of a size, HOT as YAML.

    Raises:
        ConfigError: Flavors have parts of a CPU, which machines cannot have, or scripts and the files beside them are
            more than cloud-init takes.
    """
    spec = asked.deployment
    used = list(dict.fromkeys(share.flavor for share in size.components.values()))
    for name in used:
        if spec.flavors[name].vcpus % 1:
            raise ConfigError(
                f"{spec.vnf_name}: flavors.{name}.vcpus: {spec.flavors[name].vcpus:g}; OpenStack has whole vCPUs only"
            )
    instances = [
        {
            "name": name,
            "flavor_key": _key(size.components[name.rpartition("-")[0]].flavor),
            "user_data": _user_data(asked, size, name),
        }
        for name in instance_names(spec, size)
    ]
    return render(
        _TEMPLATE,
        {
            "vnf_name": spec.vnf_name,
            "name": name_of(spec, size),
            "vcpus": f"{spec.vcpus(size):g}",
            "memory_mb": spec.memory_mb(size),
            "flavors": [
                {
                    "name": name,
                    "key": _key(name),
                    "vcpus": int(spec.flavors[name].vcpus),
                    "memory_mb": spec.flavors[name].memory_mb,
                }
                for name in used
            ],
            "instances": instances,
            "servers": spec.servers.count,
            "policy": _policy(spec.servers.count, len(instances)),
            "core_pinning": spec.servers.core_pinning,
        },
    )


def write_heat(asked: Specifications, sizes: Mapping[str, Size], folder: Path) -> list[Path]:
    """Write the templates of sizes, given by name, into a folder; return their paths.

    Raises:
        ConfigError: As above.
        CsitError: They cannot be written.
    """
    for name, size in sizes.items():  # one at a time: thousands of sizes are gigabytes
        write_whole(folder / f"{name}.yaml", heat_template(asked, size))
    return [folder / f"{name}.yaml" for name in sizes]


def _key(flavor: str) -> str:
    return re.sub(r"\W", "_", flavor)


def _policy(servers: int, instances: int) -> str:
    """Policy that assigns instances to hosts: one host, one each, or spread over those there are."""
    if servers == 1:
        return "affinity"
    return "anti-affinity" if instances <= servers else "soft-anti-affinity"


def _user_data(asked: Specifications, size: Size, instance: str) -> str:
    """Script of cloud-init in an instance; `@<instance>@` stands for an address."""
    spec = asked.deployment
    component, _, number = instance.rpartition("-")
    script = asked.install[component]
    share = size.components[component]
    home, folder = f"/opt/{spec.vnf_name}", f"/var/lib/{spec.vnf_name}"
    variables = {
        "CSIT_COMPONENT": component,
        "CSIT_INSTANCE": number,
        "CSIT_ADDRESS": f"@{instance}@",
        "CSIT_FLAVOR": share.flavor,
        "CSIT_FLAVOR_VCPUS": f"{spec.flavors[share.flavor].vcpus:g}",
        "CSIT_MEMORY_MB": str(spec.flavors[share.flavor].memory_mb),
        "CSIT_FOLDER": folder,
        **asked.options,
    }
    rows: dict[str, list[str]] = {}
    for name in instance_names(spec, size):
        rows.setdefault(name.rpartition("-")[0], []).append(f"@{name}@")
    variables |= {f"CSIT_ADDRESSES_{name.upper().replace('-', '_')}": " ".join(row) for name, row in rows.items()}
    config = {
        "write_files": _files(script.parent, home),
        "runcmd": [
            ["mkdir", "-p", folder],
            ["env", "-C", folder, *(f"{name}={value}" for name, value in variables.items()), f"{home}/{script.name}"],
        ],
    }
    text = "#cloud-config\n" + json.dumps(config) + "\n"
    if len(base64.b64encode(text.encode())) > _MAX_USER_DATA:
        raise ConfigError(_too_large(script.parent, len(text)))
    return text


def _files(folder: Path, home: str) -> list[dict[str, str]]:
    """Entries of cloud-init for the files of a folder; no more is read than an instance takes."""
    rows: list[dict[str, str]] = []
    size = 0
    for path in sorted(folder.iterdir()):
        if not path.is_file() or path.suffix == _NOT_SENT or path.name.startswith("."):
            continue
        status = path.stat()
        size += status.st_size
        if size > _MAX_BYTES:
            raise ConfigError(_too_large(folder, size))
        rows.append(
            {
                "path": f"{home}/{path.name}",
                "permissions": f"{status.st_mode & 0o777:04o}",
                "encoding": "b64",
                "content": base64.b64encode(content_of(path, _MAX_BYTES)).decode("ascii"),
            }
        )
    return rows


def _too_large(folder: Path, size: int) -> str:
    return (
        f"{folder}: install script and the files beside it are at least {size} bytes for cloud-init; an instance takes "
        f"{_MAX_BYTES}"
    )
