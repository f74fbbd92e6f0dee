#!/bin/sh
# Makes sure that commands which the tests run are there. Arguments are pairs
# command:package (Debian). As root on a Debian system what is missing is
# installed; otherwise it is named and the script fails.
set -eu
missing=
for pair in "$@"; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	# The lists may be old or absent: fetch them only when the first try fails.
	# shellcheck disable=SC2086 # a list of words
	apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
		{ apt-get update >/dev/null && apt-get install -y --no-install-recommends $missing >/dev/null; }
	exit 0
fi
echo "missing Debian packages:$missing (install them, or run as root)" >&2
exit 1
