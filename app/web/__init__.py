"""HTTP: the only room that imports FastAPI.

    request -> Guard (headers, path, token, method, body) -> route -> the rooms below -> JSON or problem+json

A request costs nothing that its sender has not earned: without the token no byte of a body is read and no
database is asked. Every error is problem+json; none repeats a value that it was sent.
"""
