"""What each repair does, and which repairs are made only where their rule is named."""

REPAIRS = {
    "ATTR002": "The type is set to that of the value, or of the attribute that is referred to; not where"
    " there are two values, as nothing says which of them counts.",
    "ATTR003": "The values that are not of the type which the attribute states are dropped.",
    "FUNC001": "One of two functions that are the same is dropped; two that differ stay, as nothing says"
    " which is meant.",
    "FUNC004": "An attribute that is listed twice is listed once; an output that is listed twice stays.",
    "FUNC005": "The declaration without a default is dropped.",
    "GRAPH001": "The graph is named after what holds it.",
    "GRAPH004": "All but one are renamed: an output keeps the name, else an input or initializer, else what"
    " is read by it.",
    "GRAPH006": "The nodes are sorted; those that need not move keep their order. A cycle stays.",
    "GRAPH007": "The inner value is renamed.",
    "GRAPH008": "The inner value is renamed.",
    "GRAPH010": "The second entry is dropped.",
    "GRAPH011": "The entry is dropped.",
    "GRAPH015": "The type that inference finds is declared, where it finds one.",
    "GRAPH019": "One entry stays, with all that both say.",
    "META001": "The second entry is dropped.",
    "META002": "The second entry is dropped.",
    "MODEL001": "`ir_version` is set to the lowest that has all that the model uses.",
    "MODEL002": "The default domain is imported, in the newest version that the IR version carried.",
    "MODEL004": "The import of the highest version stays, as that one binds; the others are dropped.",
    "MODEL007": "An import that nothing uses is dropped, other than that of the default operator set.",
    "MODEL012": "The default domain is imported in the version that binds: the newest that the IR version"
    " carried, and in a function the model's.",
    "NAME003": "All but the first are numbered.",
    "NAME005": "All but the first are numbered.",
    "NODE004": "The second attribute of the name is dropped.",
    "QUANT003": "An annotation that is the same as another is dropped.",
    "TENSOR011": "The initializer is named; nothing can read it.",
    "TYPE003": "The dimension is left open.",
}
"""The repairs that can hurt nobody, by the rule whose breaks they repair: `fix` makes them all."""

_RAISED = "`ir_version` is raised; a reader that knows only earlier versions then refuses the model."

UNSAFE_REPAIRS = {
    "GRAPH004": "An input or initializer of the model that shares its name is renamed; whoever runs the model"
    " or loads its weights must know.",
    "GRAPH012": _RAISED,
    "MODEL007": _RAISED,
    "MODEL008": _RAISED,
    "MODEL011": _RAISED,
    "NAME001": "Odd characters become `_`, and a number is added where that is taken. Inputs, outputs and"
    " initializers are renamed too: whoever runs the model must know, and weights lose the names by which"
    " a framework finds its parameters.",
    "NAME002": "Odd characters become `_`, and a number is added where that is taken; a function is renamed"
    " in its calls too. Tools that refer to a node by its name no longer find it.",
    "NAME004": "Odd characters become `_`, and a number is added where that is taken, wherever the name"
    " stands. A dimension such as `2*N` no longer says how it follows from others.",
    "TYPE007": _RAISED,
}
"""The repairs that change what others rely on, each made only where its rule is named as unsafe."""
