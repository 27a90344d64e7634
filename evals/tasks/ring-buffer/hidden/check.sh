set -e
find . -name '*_test.go' ! -name 'hidden_test.go' -delete
go vet ./...
go test -count=1 -v -run '^TestHidden' ./ring > out.txt 2>&1 || { tail -30 out.txt; exit 1; }
test "$(grep -c '^--- PASS: TestHidden' out.txt)" = 4
seq 12 | go run ./cmd/last > last.txt
test "$(paste -sd' ' last.txt)" = "3 4 5 6 7 8 9 10 11 12"
grep -qE '"sync(/atomic)?"|chan ' ring/*.go
echo PASS
