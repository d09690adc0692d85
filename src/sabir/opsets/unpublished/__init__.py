"""Operators of the default domain that files in use call and that the standard never released, by room."""
