"""Dormouse: background jobs and booking reminders for apps on hosts that scale to zero."""
