"""A mail server on loopback that answers as a test tells it to.

`replies` maps a verb (GREETING, EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA, DOT) to what it hears: a line to send, DROP to
close the connection in silence, or HANG to say nothing at all.
"""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

DROP = "drop"
HANG = "hang"
DEFAULTS = {
    "GREETING": "220 ready",
    "EHLO": "250-loopback\r\n250-SIZE 50000000\r\n250 AUTH PLAIN",
    "STARTTLS": "220 go ahead",
    "AUTH": "235 welcome",
    "MAIL": "250 ok",
    "RCPT": "250 ok",
    "DATA": "354 send it",
    "DOT": "250 queued as 1",
    "QUIT": "221 bye",
}


@dataclass
class SmtpServer:
    """What the server says, and what it was told."""

    replies: dict[str, str] = field(default_factory=dict)
    certificate: Path | None = None
    port: int = 0
    verbs: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    protected: list[bool] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold one conversation."""
        try:
            verb = "GREETING"
            while await self._answer(verb, writer):
                if verb == "STARTTLS" and self.certificate is None:
                    await asyncio.Event().wait()
                if verb == "STARTTLS":
                    await writer.start_tls(self.context())
                line = (await reader.readuntil(b"\r\n")).decode()
                verb = line.split()[0].upper()
                self.verbs.append(verb)
                self.lines.append(line)
                if verb == "DATA" and await self._answer(verb, writer):
                    self.messages.append(await reader.readuntil(b"\r\n.\r\n"))
                    self.protected.append(writer.get_extra_info("sslcontext") is not None)
                    verb = "DOT"
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.verbs.append("GONE")
        finally:
            writer.close()

    async def _answer(self, verb: str, writer: asyncio.StreamWriter) -> bool:
        reply = self.replies.get(verb, DEFAULTS.get(verb, "500 what?"))
        if reply == HANG:
            await asyncio.Event().wait()
        if reply == DROP:
            return False
        writer.write(f"{reply}\r\n".encode())
        await writer.drain()
        return verb != "QUIT" and (verb != "DATA" or reply.startswith("354"))

    def context(self) -> ssl.SSLContext:
        """The server's side of TLS."""
        assert self.certificate is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        return context


@asynccontextmanager
async def smtp_server(
    replies: dict[str, str] | None = None, *, certificate: Path | None = None, is_implicit: bool = False
) -> AsyncIterator[SmtpServer]:
    """Run a server; with *certificate* it offers STARTTLS, or speaks TLS from the first byte when *is_implicit*."""
    server = SmtpServer(replies or {}, certificate)
    if certificate and not is_implicit:
        server.replies = {"EHLO": "250-loopback\r\n250-STARTTLS\r\n250 AUTH PLAIN"} | server.replies
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    context = server.context() if is_implicit else None
    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def make_certificate(folder: Path, *names: str) -> Path:
    """Make a self-signed certificate with its key in one file."""
    made = folder / "server.pem"
    subject = ",".join(names)
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=loopback", "-addext", f"subjectAltName={subject}"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    made.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return made
