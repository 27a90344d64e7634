write() { printf '#!/bin/sh\n%s\n' "$2" > slug.sh; git commit -q -a -m "$1"; }
write 'Add digits' "printf '%s\\n' \"\$1\" | sed 's/[^A-Za-z0-9]\\{1,\\}/-/g' | tr A-Z a-z"
write 'Use tr' "printf '%s\\n' \"\$1\" | tr A-Z a-z | tr -cs 'a-z0-9\\n' -"
write 'Squeeze later' "printf '%s\\n' \"\$1\" | tr A-Z a-z | tr -c 'a-z0-9\\n' - | sed 's/_\\{1,\\}/-/g'"
write 'Keep dots' "printf '%s\\n' \"\$1\" | tr A-Z a-z | tr -c 'a-z0-9.\\n' - | sed 's/_\\{1,\\}/-/g'"
