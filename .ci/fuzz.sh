#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each, found by listing.
set -eu
: "${FUZZTIME:=20s}"
found=0
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		found=$((found + 1))
		echo "$package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" "$package"
	done
done
echo "$found fuzz targets"
[ "$found" -gt 0 ]
