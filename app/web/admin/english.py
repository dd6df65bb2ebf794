"""What the machinery calls by a short name, as a reader of English is told it on a page."""

from collections.abc import Mapping

ENGLISH: Mapping[str, str] = {
    "jobs_dead": "Jobs have died",
    "reminders_failed": "Reminders have failed",
    "reminders_missed": "Bookings started unreminded",
    "unknown_kinds": "There are kinds that no build here knows",
    "channel_suspended": "A channel is suspended",
    "late": "Work began late",
    "tick_gap": "The gap between two ticks was long",
    "unserved_queues": "There are queues that nobody here serves",
    "invalid_recipient": "the address cannot be mailed",
}
