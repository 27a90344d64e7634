fail() { echo "$1"; exit 1; }
mkdir bin
for tool in jq python3 python node perl; do printf '#!/bin/sh\nexit 99\n' > "bin/$tool"; chmod +x "bin/$tool"; done
PATH=$PWD/bin:$PATH
test "$(sh logstat.sh --json sample.log)" = '{"levels":{"ERROR":2,"INFO":1,"WARN":1},"lines":4}' || fail "$(sh logstat.sh --json sample.log)"
test "$(sh logstat.sh --json < sample.log)" = '{"levels":{"ERROR":2,"INFO":1,"WARN":1},"lines":4}' || fail stdin
test "$(sh logstat.sh sample.log)" = 'ERROR 2
INFO 1
WARN 1' || fail plain
: > empty.log
test "$(sh logstat.sh --json empty.log)" = '{"levels":{},"lines":0}' || fail empty
printf '1 A"B x\n' > odd.log
test "$(sh logstat.sh --json odd.log)" = '{"levels":{"A\"B":1},"lines":1}' || fail "quote: $(sh logstat.sh --json odd.log)"
cp sample.log "with space.log"
sh logstat.sh --json "with space.log" sample.log | grep -q '"lines":8' || fail "two files"
sh logstat.sh --nope sample.log > out 2> err
test $? = 2 || fail "status of an unknown option"
test ! -s out || fail "usage on stdout"
grep -q usage err || fail "no usage"
grep -q -e --json README.md || fail "not documented"
echo PASS
