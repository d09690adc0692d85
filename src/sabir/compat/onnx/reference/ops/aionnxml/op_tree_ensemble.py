"""The numbers by which TreeEnsemble names comparisons, aggregations and transforms."""

from __future__ import annotations

import enum


class AggregationFunction(enum.IntEnum):
    """How the votes of trees become one."""

    AVERAGE = 0
    SUM = 1
    MIN = 2
    MAX = 3


class PostTransform(enum.IntEnum):
    """What is computed of the result."""

    NONE = 0
    SOFTMAX = 1
    LOGISTIC = 2
    SOFTMAX_ZERO = 3
    PROBIT = 4


class Mode(enum.IntEnum):
    """How a node compares a feature with its value."""

    LEQ = 0
    LT = 1
    GTE = 2
    GT = 3
    EQ = 4
    NEQ = 5
    MEMBER = 6


__all__ = ["AggregationFunction", "Mode", "PostTransform"]
