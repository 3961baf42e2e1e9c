"""BPF objects: loading them, reading their maps and iterators. Everything here blocks: call it from a thread."""
