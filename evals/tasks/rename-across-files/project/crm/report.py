from crm import api


def report(numbers):
    return "\n".join(api.fetch(number)["name"] for number in numbers)
