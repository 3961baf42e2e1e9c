"""Parsers of sysfs files: bytes in, typed records in SI units out; no path, no clock, no log."""
