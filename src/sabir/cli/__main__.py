"""`python -m sabir.cli`, for where the script `sabir` is not on the path."""

import sys

from sabir.cli._entry import main

sys.exit(main())
