"""`python -m csit_utils`."""

import sys

from csit_utils.cli import main

if __name__ == "__main__":
    sys.exit(main())
