"""The operators of the default domain, one room each."""
