"""The passes over tensor expressions: `PIPELINE` lists them in order."""

from sabir.compilation.passes._pipeline import PASSES, PIPELINE, Pass, run_pipeline

__all__ = ["PASSES", "PIPELINE", "Pass", "run_pipeline"]
