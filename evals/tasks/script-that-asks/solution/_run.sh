sh release.sh --yes < /dev/null
