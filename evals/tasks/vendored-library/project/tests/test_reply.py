import unittest

from client.reply import read


class ReplyTest(unittest.TestCase):
    def test_no_blank_behind_the_colon(self):
        self.assertEqual(read("HTTP/1.1 200 OK\nA:1\nB: 2\n\nhi"), (200, {"a": "1", "b": "2"}, "hi"))
