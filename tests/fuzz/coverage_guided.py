"""Inputs that reach new lines of the code, made by atheris for one target.

`python -m tests.fuzz.coverage_guided NAME SECONDS` ends with status 77, and with the input in a file `crash-*`, where
an input fails.
"""

import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed: .venv/bin/pip install atheris (CPython 3.11 to 3.13 on Linux)")

with atheris.instrument_imports(include=["csit_utils", "resources"]):
    from tests.fuzz.targets import TARGETS, tried


def main() -> None:
    """Run until the time is over or an input fails."""
    name, seconds = sys.argv[1:3]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, example in enumerate(TARGETS[name].examples):
        (corpus / str(number)).write_bytes(example)
    words = folder / "words"
    words.write_text(
        "".join('"' + "".join(f"\\x{byte:02x}" for byte in piece) + '"\n' for piece in TARGETS[name].pieces),
        encoding="ascii",
    )
    limits = [f"-max_total_time={seconds}", "-rss_limit_mb=2000", "-max_len=200000", "-print_final_stats=0"]
    options = [sys.argv[0], str(corpus), f"-dict={words}", f"-artifact_prefix={folder}/", *limits]
    atheris.Setup(options, lambda content: tried(name, content, folder))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
