"""What each kind of change requires of the model version, and why; docs/versions.md has the same table."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Bump: TypeAlias = Literal["major", "minor", "patch"]
BUMPS: tuple[Bump, ...] = ("major", "minor", "patch")
"""The parts of a version, from the one that a breaking change increases on."""


class Rule(NamedTuple):
    """What one kind of change requires: the part of the version, or None, and the reason.

    >>> POLICY['output-added'].bump
    'minor'
    """

    change: str
    bump: Bump | None
    reason: str


POLICY: dict[str, Rule] = {
    # inputs
    "input-added": Rule(
        "a new input without a default", "major", "A consumer of the old model does not feed it."
    ),
    "optional-input-added": Rule(
        "a new input with a default, or of an optional type",
        "minor",
        "A consumer of the old model leaves it out.",
    ),
    "input-removed": Rule(
        "an input is gone, or has another name",
        "major",
        "A consumer that feeds it by its name gets an error.",
    ),
    "default-added": Rule(
        "an input gets a default", "minor", "A run without this input was not possible before."
    ),
    "default-removed": Rule(
        "an input loses its default", "major", "A consumer that leaves it out gets an error."
    ),
    "default-changed": Rule(
        "an input gets another default",
        "patch",
        "A consumer that leaves it out gets other results of the same interface, as with new weights.",
    ),
    "inputs-reordered": Rule(
        "an input of the old model has another position",
        "major",
        "A consumer that feeds by position feeds another input.",
    ),
    "input-type-widened": Rule(
        "an input gets a wider element type (int32 to int64, float16 to float)",
        "minor",
        "The standard names this as a compatible change.",
    ),
    "input-type-changed": Rule(
        "an input gets any other type",
        "major",
        "The standard: an incompatible type is breaking. A narrower type cannot have all old values.",
    ),
    "input-shape-widened": Rule(
        "an input takes more shapes: a fixed size becomes open, two equal sizes may differ",
        "minor",
        "All old inputs are valid; the others were not possible before.",
    ),
    "input-shape-changed": Rule(
        "an input no longer takes some shapes: an open size becomes fixed, another size or rank",
        "major",
        "An input that was valid before is refused.",
    ),
    # outputs
    "output-added": Rule("a new output", "minor", "A consumer of the old model does not ask for it."),
    "output-removed": Rule(
        "an output is gone, or has another name",
        "major",
        "The standard names this as breaking: an output has no default in its place.",
    ),
    "outputs-reordered": Rule(
        "an output of the old model has another position",
        "major",
        "A consumer that reads results by position reads another one, without any error.",
    ),
    "output-type-widened": Rule(
        "an output gets a wider element type",
        "minor",
        "The standard names this as a compatible change for inputs and outputs alike.",
    ),
    "output-type-changed": Rule(
        "an output gets any other type",
        "major",
        "The standard: an incompatible type is breaking. A consumer may have memory of the old type.",
    ),
    "output-shape-narrowed": Rule(
        "an output has fewer shapes: an open size becomes fixed",
        "minor",
        "Each result is one that a consumer of the old model was ready for.",
    ),
    "output-shape-changed": Rule(
        "an output may have shapes that it did not have: a fixed size becomes open, another size or rank",
        "major",
        "Outputs are the other way round than inputs: the consumer is the one that must take more.",
    ),
    "output-shape-follows": Rule(
        "the shape of an output follows inputs that take more shapes (1 to N in both)",
        None,
        "For each old input the output has its old shape; the wider input requires its own increment.",
    ),
    # meaning
    "meaning-changed": Rule(
        "another denotation of a type or dimension of an input or output, or another value of the image "
        "metadata (`Image.…`)",
        "major",
        "The standard: other required contents of an input, such as a grey image instead of a coloured "
        "one, are breaking. These fields are where a model declares its contents.",
    ),
    "meaning-declared": Rule(
        "a denotation or image metadata is added or removed",
        None,
        "What was true without being declared does not change with the declaration.",
    ),
    "dimension-renamed": Rule(
        "a dimension variable is named, unnamed or renamed",
        None,
        "The same shapes are valid; the name is a label.",
    ),
    # what the model computes
    "weights-changed": Rule(
        "an initializer, or a tensor in an attribute, has other contents",
        "patch",
        "The standard: it affects accuracy, and neither inputs nor outputs.",
    ),
    "node-added": Rule("a new node", "patch", "The same interface is computed in another way."),
    "node-removed": Rule("a node is gone", "patch", "The same interface is computed in another way."),
    "attribute-changed": Rule(
        "a node has other attributes", "patch", "The same interface is computed in another way."
    ),
    "operands-changed": Rule(
        "a node reads other values", "patch", "The same interface is computed in another way."
    ),
    "output-recomputed": Rule(
        "an output is another value of the graph", "patch", "The same interface is computed in another way."
    ),
    "operator-version-changed": Rule(
        "nodes use another version of their operator",
        "patch",
        "The same interface is computed by other operators, which may be less or more exact.",
    ),
    "function-changed": Rule(
        "a function that is in both models has other inputs, outputs or attributes",
        "patch",
        "The same interface is computed in another way.",
    ),
    "graph-changed": Rule(
        "any other difference in what a graph computes",
        "patch",
        "The same interface is computed in another way.",
    ),
    "quantization-changed": Rule(
        "other quantization annotations", "patch", "They affect accuracy and performance."
    ),
    "devices-changed": Rule(
        "another distribution over devices", "patch", "It affects performance, and no result."
    ),
    # training
    "training-added": Rule(
        "new training information", "minor", "A consumer of the old model does not train it."
    ),
    "training-removed": Rule(
        "training information is gone", "major", "A consumer that trains the model no longer can."
    ),
    "training-changed": Rule(
        "other steps or bindings of training",
        "patch",
        "It affects the accuracy that training reaches. Inputs and outputs of the training graphs follow the "
        "rules of inputs and outputs.",
    ),
    # what is versioned separately, and what no consumer sees
    "ir-version-changed": Rule(
        "another IR version",
        None,
        "The standard: model versions are independent of IR versions. A consumer compares these itself, as "
        "`accepts` does.",
    ),
    "import-changed": Rule(
        "another import of an operator set",
        None,
        "The standard: model versions are independent of operator versions. Nodes whose operator changes its "
        "version are reported separately.",
    ),
    "function-added": Rule(
        "a new function", None, "A function does nothing until a node calls it, which is reported."
    ),
    "function-removed": Rule(
        "a function is gone", None, "Its last call is gone too, which is reported, or it had none."
    ),
    "unused-weights-changed": Rule(
        "other initializers that nothing reads", None, "No result depends on them."
    ),
    "name-changed": Rule(
        "another domain of the model, or another name of its graph",
        None,
        "These name the model of which this is a version; no consumer depends on them.",
    ),
    "producer-changed": Rule("another producer", None, "It says who wrote the file."),
    "metadata-changed": Rule(
        "other metadata", None, "Its meaning is private to those who agree on its keys."
    ),
    "documentation-changed": Rule("other doc strings", None, "They are for people."),
}
"""The kinds of changes; `Change.kind` is a key."""
