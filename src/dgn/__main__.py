"""`python -m dgn`: the command line."""

import sys

from dgn.apps.cli import run

if __name__ == "__main__":
    sys.exit(run())
