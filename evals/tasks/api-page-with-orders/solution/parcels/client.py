"""Requests to the parcel service, version 2. What is sent is decided here; another module sends it."""

import json

BASE = "https://api.parcels.example/v2"


def label_request(token, parcel):
    """Return (method, address, headers, body) of the request for a label."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return "POST", f"{BASE}/labels", headers, json.dumps({"weight_kg": parcel["grams"] / 1000})
