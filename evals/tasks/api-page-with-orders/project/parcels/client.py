"""Requests to the parcel service, version 1. What is sent is decided here; another module sends it."""

BASE = "https://api.parcels.example/v1"


def label_request(token, parcel):
    """Return (method, address, headers, body) of the request for a label."""
    return "GET", f"{BASE}/label?weight={parcel['grams']}", {"X-Token": token}, None
