GREETING = "Dear customer, your order is on its way."
TOTAL = "Total: {total} EUR"
CLOSING = "“Thank you”"
