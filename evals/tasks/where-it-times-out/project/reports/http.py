import time

from reports import limits, settings


class Silent(Exception):
    pass


def call(send, address):
    """Call send(address, seconds); wait and try again when it is silent."""
    calls = min(settings.RETRIES + 1, limits.MOST_CALLS + 1)
    for number in range(calls):
        try:
            return send(address, min(settings.TIMEOUT, limits.MOST_SECONDS_PER_CALL))
        except Silent:
            if settings.PAUSE > limits.MOST_SECONDS_PER_CALL:
                time.sleep(settings.PAUSE)
    raise Silent(address)
