"""From a model to tensor expressions: patterns of shapes, preparation, lowering."""
