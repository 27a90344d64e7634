"""Speak SMTP to a server."""
