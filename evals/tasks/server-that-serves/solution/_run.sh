python3 serve.py 18765 >/dev/null 2>&1 & server=$!
kill $server
