from vendor import tinyhttp
from client.reply import read

assert read("HTTP/1.1 200 OK\nA:1\nB: 2\n\nhi") == (200, {"a": "1", "b": "2"}, "hi")
assert read("HTTP/1.1 404 No\nHost:x:80\n\na:b\n\nc") == (404, {"host": "x:80"}, "a:b\n\nc")
assert read("HTTP/1.1 204 No\n\n") == (204, {}, "")
assert read("HTTP/1.1 200 OK\nEmpty:\n\n")[1] == {"empty": ""}
try:
    read("HTTP/1.1 200 OK\nno header\n\n")
except tinyhttp.BadHeader:
    pass
else:
    raise AssertionError("accepted")
try:
    tinyhttp.parse_headers("A:1")
except tinyhttp.BadHeader:
    pass
else:
    raise AssertionError("the vendored code was changed while it runs")
print("PASS")
