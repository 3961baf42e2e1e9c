"""inferwatch: a node agent that tells why an LLM inference service is slow."""

__version__ = "0.1.0"
