set -e
find . -name '*_test.go' ! -name 'hidden_test.go' -delete
go vet ./...
go test -count=1 -v -run '^TestHidden' ./report > out.txt 2>&1 || { tail -30 out.txt; exit 1; }
test "$(grep -c '^--- PASS: TestHidden' out.txt)" = 2
echo PASS
