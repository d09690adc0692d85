"""What later processes read instead of compiling: descriptions of files, plans, packed weights."""
