"""Control groups of version 1, version 2 and both at once: where a group's files are, and what they say."""
