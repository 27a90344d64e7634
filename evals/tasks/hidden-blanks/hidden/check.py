from texts import mail

assert mail.GREETING == "Dear customer, your order has been shipped.", ascii(mail.GREETING)
assert mail.TOTAL == "Total:\u00a0{total}\u00a0EUR", ascii(mail.TOTAL)
assert mail.CLOSING == "\u201cThank you\u201d", ascii(mail.CLOSING)
print("PASS")
