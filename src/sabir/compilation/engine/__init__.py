"""The compiled engine: which plans a model has, when they are made, and which of them are kept."""
