"""The family of recurrences: steps that carry states on."""
