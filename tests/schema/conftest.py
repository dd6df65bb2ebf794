"""These tests are many and small: they share a database that is emptied after each."""

from tests.databases import clean, connect, direct_dsn, dsn

__all__ = ["clean", "connect", "direct_dsn", "dsn"]
