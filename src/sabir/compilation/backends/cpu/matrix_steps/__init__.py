"""The family of recurrences whose steps update matrices, such as linear attention."""
