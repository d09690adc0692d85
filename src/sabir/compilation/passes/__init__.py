"""The passes over tensor expressions: `PIPELINE` lists them in order."""

from sabir.compilation.passes._pipeline import PASSES, PIPELINE, Pass, run_pipeline
from sabir.compilation.passes._repeats import MOST_REPEATS

__all__ = ["MOST_REPEATS", "PASSES", "PIPELINE", "Pass", "run_pipeline"]
