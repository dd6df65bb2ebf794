"""Which version this is: a constant, because an installation's metadata takes longer to read than a short tick."""

VERSION = "0.1.0"
