"""From a model to tensor expressions: shape patterns, preparation, lowering."""
