"""Makes a trust store for Java of the certificates that other programs here trust: Java looks at a store of its own.

Arguments: the bundle (PEM) and the file to write. A network whose proxy signs what passes is in the one and not in the
other.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

_ONE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def certificates(bundle: bytes) -> Iterator[x509.Certificate]:
    """Those of a bundle that can be read; some very old ones keep to no standard."""
    for text in _ONE.findall(bundle):
        try:
            yield x509.load_pem_x509_certificate(text)
        except ValueError as error:
            print(f"a certificate is left out: {error}", file=sys.stderr)


def main(bundle: Path, store: Path) -> None:
    """Write all certificates of the bundle into the store."""
    found = enumerate(certificates(bundle.read_bytes()))
    named = [pkcs12.PKCS12Certificate(each, str(number).encode()) for number, each in found]
    store.parent.mkdir(parents=True, exist_ok=True)
    store.write_bytes(pkcs12.serialize_java_truststore(named, NoEncryption()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
