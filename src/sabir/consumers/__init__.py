"""Consumers of models: what a model requires of the program that reads it, and whether a consumer has it."""

from sabir.consumers._consumer import CONSUMERS, Consumer, find_consumer
from sabir.consumers._format import FeatureUse
from sabir.consumers._obstacles import Obstacle, ObstacleKind
from sabir.consumers._requirements import ImportUse, OperatorUse, Requirements, UnknownUse, requirements

__all__ = [
    "CONSUMERS",
    "Consumer",
    "FeatureUse",
    "ImportUse",
    "Obstacle",
    "ObstacleKind",
    "OperatorUse",
    "Requirements",
    "UnknownUse",
    "find_consumer",
    "requirements",
]
