"""The family of recurrences: loops whose steps read the states of the previous step and replace them."""
