from crm import api


def report(numbers):
    return "\n".join(api.load_customer(number)["name"] for number in numbers)
