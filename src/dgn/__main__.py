"""`python -m dgn`: the command line, where the script `dgn` is not on the path."""

import sys

from dgn.cli.main import main

sys.exit(main())
