"""The compiled engine: which plans a model has, when they are compiled, and which of them stay in memory."""
