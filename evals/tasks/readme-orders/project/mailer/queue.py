"""Hold mails until they can be sent."""
