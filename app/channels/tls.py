"""The one TLS context of all channels: certificates and names are always checked."""

import ssl
from functools import lru_cache


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the context, made once: reading the system's certificates takes tens of milliseconds.

    SSL_CERT_FILE, which OpenSSL itself reads, names a private authority.
    """
    return ssl.create_default_context()
