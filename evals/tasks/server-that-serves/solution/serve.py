import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from counter import Counter

COUNTER = Counter()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/count":
            self.reply(200, str(COUNTER.up()))
        elif self.path == "/health":
            self.reply(200, "ok")
        else:
            self.reply(404, "nothing here")

    def reply(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
