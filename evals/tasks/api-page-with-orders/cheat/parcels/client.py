import json

BASE = "https://api.parcels.example/v2"


def label_request(token, parcel):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return "POST", f"{BASE}/labels", headers, json.dumps({"weight_kg": parcel["grams"] / 1000})
