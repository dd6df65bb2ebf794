"""The tree of all we raise, by what the one who catches it can do.

    DormouseError
    ├── ConfigError           stop: a person must change the settings
    ├── DatabaseUnavailable   answer 503, or try again later
    ├── SchemaBehind          stop: run `dormouse migrate`
    ├── BadInput              answer 422: the caller must change what it sent
    ├── NotFound              answer 404
    ├── Conflict              answer 409: what was asked is not possible in this state
    ├── LeaseLost             write nothing: another tick owns the job now
    └── SendError             what became of one message
        ├── RecipientRefused  never: this recipient cannot be reached, do not try again
        ├── NotSent           surely not sent: try again
        ├── MaybeSent         unknown: it may have been sent
        └── ChannelSuspended  the whole channel must wait; this message was not sent

A message names no recipient, no token and no address: it may be stored and shown.
"""


class DormouseError(Exception):
    """Something that Dormouse reports in its own words."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__ or type(self).__name__)


class ConfigError(DormouseError):
    """The settings do not fit together."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class DatabaseUnavailable(DormouseError):
    """The database could not be reached in time."""


class SchemaBehind(DormouseError):
    """The database's schema is behind this build: run `dormouse migrate`."""


class BadInput(DormouseError):
    """The input was refused."""


class NotFound(DormouseError):
    """There is no such row."""


class Conflict(DormouseError):
    """The row is not in a state that allows this."""


class LeaseLost(DormouseError):
    """The lease was lost: another tick owns this job now."""


class SendError(DormouseError):
    """A message was not sent for certain."""


class RecipientRefused(SendError):
    """The recipient was refused for good."""


class NotSent(SendError):
    """The message was not sent; *delay* seconds is what the far side asked for, if it did."""

    def __init__(self, message: str, delay: float | None = None) -> None:
        self.delay = delay
        super().__init__(message)


class MaybeSent(SendError):
    """The message may have been sent: the answer was lost."""


class ChannelSuspended(SendError):
    """The channel takes nothing for *delay* seconds: a rate limit, a quota or its credentials."""

    def __init__(self, message: str, delay: float) -> None:
        self.delay = delay
        super().__init__(message)
