"""The HTTP server: pages are copied from the store, nothing is sampled for a request."""
