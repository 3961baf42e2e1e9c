"""Which processes are serving processes: matchers, roles, engines, endpoints, containers."""
