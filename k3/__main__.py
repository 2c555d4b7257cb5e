"""`python -m k3` is `k3`."""

import sys

from k3.cli import main

if __name__ == "__main__":
    sys.exit(main())
