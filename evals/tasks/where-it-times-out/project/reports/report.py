from reports.http import call


def fetch_report(send, number):
    """Return a report; `send` raises Silent when the server does not answer in time."""
    return call(send, f"/reports/{number}")
