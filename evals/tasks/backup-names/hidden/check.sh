set -e
fail() { echo "$1"; exit 1; }
mkdir -p "w/from dir/a b/*" "w/from dir/plain"
echo 1 > "w/from dir/a b/my file.txt"
echo 2 > "w/from dir/plain/x.txt"
echo 3 > "w/from dir/a b/*/star*.txt"
echo 4 > "w/from dir/other.md"
echo 5 > "w/from dir/-n.txt"
out=$(sh backup.sh "w/from dir" "w/to dir") || fail "a good backup fails"
test "$out" = done || fail "it said $out"
for name in "a b/my file.txt" "plain/x.txt" "a b/*/star*.txt" "-n.txt"; do
    cmp "w/from dir/$name" "w/to dir/$name" || fail "lost $name"
done
test ! -e "w/to dir/other.md" || fail "too much"
echo blocked > w/blocked
if out=$(sh backup.sh "w/from dir" w/blocked 2>/dev/null); then fail "a failed copy ends with 0"; fi
case $out in *done*) fail "a failed copy says done" ;; esac
grep -q bash backup.sh && fail "not plain sh"
echo PASS
