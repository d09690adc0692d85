"""The engines, with which the generic suites run: one entry in `sabir.runtime` gives an engine all of them."""

from sabir.runtime import ENGINES as _MAKERS

ENGINES = tuple(_MAKERS)
DEFAULT = "reference"
