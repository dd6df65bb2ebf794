"""Where the operator's pages look: who is logged in, and what became of the reminders, newest start first."""

from alembic import op

revision = "0003"
down_revision = "0002"

# digest: an HMAC of what the browser holds, so that a copy of this table opens nothing.
SESSIONS = """
CREATE TABLE admin_sessions (
    digest bytea PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT admin_sessions_digest_is_sha256 CHECK (octet_length(digest) = 32)
)
"""

REMINDER_LISTS = """
CREATE INDEX reminders_status_idx ON reminders (status, starts_at, booking_id, remind_before, channel)
"""

DOWN = """
DROP INDEX reminders_status_idx;
DROP TABLE admin_sessions
"""


def upgrade() -> None:
    for statement in (SESSIONS, REMINDER_LISTS):
        op.execute(statement)


def downgrade() -> None:
    op.execute(DOWN)
