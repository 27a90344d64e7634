GREETING = "Dear customer, your order has been shipped."
TOTAL = "Total: {total} EUR"
CLOSING = "“Thank you”"
