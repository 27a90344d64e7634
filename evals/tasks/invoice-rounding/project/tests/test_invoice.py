import unittest

from billing.invoice import Invoice


class InvoiceTest(unittest.TestCase):
    def test_each_line_is_rounded(self):
        invoice = Invoice()
        for _ in range(3):
            invoice.add("0.13")
        self.assertEqual(invoice.tax(), 6)

    def test_a_half_is_rounded_up(self):
        invoice = Invoice()
        invoice.add("0.50")
        self.assertEqual(invoice.tax(), 10)


if __name__ == "__main__":
    unittest.main()
