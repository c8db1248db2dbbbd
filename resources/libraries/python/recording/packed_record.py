"""The short form of a record, as it travels in `output.xml`: what rows of tables need as it is, the rest compressed.

A record is JSON of some 80 kB, nineteen twentieths of which are trials, histograms, the plan and the environment. They
are replaced by one key, `packed`: the base64 of zlib (RFC 1950) of their JSON object. Another new key, `counted`, has
the digest of the whole record, and the few figures of the packed part that a row of a table has: a
table of tests is made without unpacking anything. A record's class marks its packed fields.
"""

import base64
import binascii
import hashlib
import json
import zlib

import msgspec

from resources.libraries.python.model.record import Record, packed_keys
from resources.libraries.python.unpacking import UnpackError, inflate

_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class NotUnpacked(ValueError):
    """The packed part of a record cannot be unpacked, for the reason in the text."""


def pack(record: Record, digest: str | None = None) -> str:
    """Return one JSON object on one line: the light keys, `counted` and `packed`."""
    digest = digest or hashlib.sha256(record.model_dump_json().encode()).hexdigest()
    heavy = set(packed_keys(type(record)))
    packed = base64.b64encode(zlib.compress(record.model_dump_json(include=heavy).encode(), 6)).decode()
    counted = json.dumps(record.counted(digest), separators=(",", ":"))
    return f'{record.model_dump_json(exclude=heavy)[:-1]},"counted":{counted},"packed":"{packed}"}}'


def unpack(packed: str | bytes) -> bytes:
    """The JSON object of the heavy keys.

    `packed`: What stands under `packed`.

    Raises:
        NotUnpacked: It is damaged, or unpacks to more than any record has.
    """
    try:
        return inflate(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError) as error:
        raise NotUnpacked(f"its packed part is damaged: {error}") from error
    except UnpackError as error:
        raise NotUnpacked(f"its packed part {error}") from error


def unpacked(text: str | bytes) -> tuple[str | bytes, str | None]:
    """The whole JSON of a record in either form, and the digest that the short form names; None for the plain form.

    Raises:
        NotUnpacked: The packed part is damaged.
        ValueError: It is no JSON at all.
    """
    if (isinstance(text, str) and '"packed"' not in text) or (isinstance(text, bytes) and b'"packed"' not in text):
        return text, None
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("packed"), str):
        return text, None
    heavy = unpack(data.pop("packed"))
    figures = data.pop("counted", None)
    if not heavy.startswith(b"{") or _KEYS.decode(heavy).keys() & data.keys():
        raise NotUnpacked("its packed part is not that of a record")
    digest = figures.get("digest") if isinstance(figures, dict) else None
    return json.dumps(data).encode()[:-1] + b"," + heavy[1:], digest if isinstance(digest, str) else None
