"""What a mail server's answer means for the message and for the channel.

RFC 5321, 4.2.1: 4yz passes, 5yz stays. Who must act decides the rest:

    421 454                  throttled: the channel rests a minute, hours when a quota is named
    530 534 535 538          credentials: the channel rests, whatever the step
    4yz                      NotSent
    5yz to RCPT TO, DATA, the dot, or 552
                             RecipientRefused: this message alone
    5yz to anything before   the channel rests: every message would hear it
    anything else            MaybeSent after the final dot, else NotSent

An answer to RCPT TO never stops the channel (but for throttling and credentials): it depends on the
recipient, and one bad address must not hold up the others. Server texts are not repeated: they quote
addresses.
"""

import re
from enum import Enum

from app.channels import waits
from app.errors import ChannelSuspended, MaybeSent, NotSent, RecipientRefused, SendError

PASSING = range(400, 500)
LASTING = range(500, 600)
THROTTLING = frozenset({421, 454})
CREDENTIALS = frozenset({530, 534, 535, 538})
TOO_BIG = 552
QUOTA_WORDS = re.compile(r"quota|daily|per day", re.IGNORECASE)
ENHANCED = re.compile(r"\s*([245]\.\d{1,3}\.\d{1,3})\b")


class Step(Enum):
    """Where in the conversation an answer came."""

    GREETING = "the greeting"
    HELLO = "EHLO"
    STARTTLS = "STARTTLS"
    LOGIN = "AUTH"
    SENDER = "MAIL FROM"
    RECIPIENT = "RCPT TO"
    DATA = "DATA"
    DOT = "the message"


ABOUT_THE_MESSAGE = frozenset({Step.RECIPIENT, Step.DATA, Step.DOT})


def judge(step: Step, code: int, text: str) -> SendError:
    """Return what an answer of *code* and *text* at *step* means."""
    enhanced = ENHANCED.match(text)
    reason = f"smtp: {code}{f' {enhanced[1]}' if enhanced else ''} to {step.value}"
    if code in THROTTLING:
        return ChannelSuspended(reason, waits.QUOTA_OF_A_DAY if QUOTA_WORDS.search(text) else waits.THROTTLED)
    if code in CREDENTIALS:
        return ChannelSuspended(reason, waits.MISCONFIGURED)
    if code in PASSING:
        return NotSent(reason)
    if code in LASTING:
        if step in ABOUT_THE_MESSAGE or code == TOO_BIG:
            return RecipientRefused(reason)
        return ChannelSuspended(reason, waits.MISCONFIGURED)
    return lost(step, f"answered {code}")


def lost(step: Step, what: str) -> SendError:
    """Return what a conversation broken off at *step* means: after the final dot it may have been sent."""
    reason = f"smtp: {what} at {step.value}"
    return MaybeSent(reason) if step is Step.DOT else NotSent(reason)
