"""The second table: rewrites for a model as a file. They may change how results are rounded.

A compiled session does not use them: it fuses what they fuse, and has other means for known sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.simplification._attentions import ATTENTIONS
from sabir.simplification._effects import EFFECTS
from sabir.simplification._fusions import FUSIONS
from sabir.simplification._linear import LINEAR
from sabir.simplification._reshapes import RESHAPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.patterns import RewriteRule

OPTIMIZATIONS: Sequence[RewriteRule] = (*EFFECTS, *RESHAPES, *LINEAR, *FUSIONS, *ATTENTIONS)
