"""Inputs and attributes that onnxruntime's attention operators declare alike."""

from sabir.schema import Attribute, Constraint, Input, at_least


def attention_bias(kind: Constraint) -> Input:
    """Return the bias of the scores."""
    doc = "(batch or 1, heads or 1, queries, total): added to the scores."
    return Input("attention_bias", kind, doc, optional=True)


def past_sequence_length(kind: Constraint) -> Input:
    """Return the number of keys in a buffer."""
    doc = "The number of past keys, one: the past is a buffer, in which the new keys follow them."
    return Input("past_sequence_length", kind, doc, optional=True)


def num_heads() -> Attribute:
    """Return the number of heads."""
    return Attribute("num_heads", "int", "The number of heads.", required=True, values=at_least(1))


def scale() -> Attribute:
    """Return the factor of the scores."""
    return Attribute("scale", "float", "The factor of the products; 0 or absent: 1 / sqrt(size).")


def mask_filter_value() -> Attribute:
    """Return what is added to the scores of padding."""
    return Attribute("mask_filter_value", "float", "Added to the scores of padding; -10000 if absent.")


def unidirectional() -> Attribute:
    """Return whether attention is causal."""
    doc = "1: a query does not attend to the keys after it."
    return Attribute("unidirectional", "int", doc, default=0)


def packed(kind: Constraint) -> tuple[Input, Input]:
    """Return the places of the rows of a batch without padding, and where each item starts."""
    return (
        Input("token_offset", kind, "(batch, length): the places of the rows, then those of padding."),
        Input("cumulative_sequence_length", kind, "(batch + 1): the row at which each item starts."),
    )
