"""Reserved times, and the messages that are owed before them."""
