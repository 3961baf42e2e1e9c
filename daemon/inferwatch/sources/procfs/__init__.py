"""Pure parsers of files below /proc: bytes in, frozen records out, SI units."""
