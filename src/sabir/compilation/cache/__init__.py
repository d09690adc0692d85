"""The cache of compiled models on disk: descriptions of files, plans, packed weights."""
