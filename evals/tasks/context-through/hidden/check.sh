set -e
go vet ./...
go test -count=1 -timeout 60s ./service > service.txt 2>&1 || { tail -30 service.txt; exit 1; }
grep -q 'func TestSummary' service/*_test.go
find . -name '*_test.go' ! -name 'hidden_test.go' -delete
go test -count=1 -timeout 60s -v -run '^TestHidden' ./web > out.txt 2>&1 || { tail -30 out.txt; exit 1; }
test "$(grep -c '^--- PASS: TestHidden' out.txt)" = 3
! grep -rnE 'context\.(Background|TODO)\(' --include='*.go' --exclude='*_test.go' .
echo PASS
