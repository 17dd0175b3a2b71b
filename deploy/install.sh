#!/bin/sh
# Install cove from a release: its program, manual pages and completion of commands.
#
#     COVE_RELEASE=https://example.org/cove/1.2.3 sh install.sh
#     sh install.sh /media/usb/cove-1.2.3
#
# COVE_RELEASE (or the argument) is where the files of a release are: an address or a folder. COVE_PREFIX is where things go: by default
# ~/.local, and /usr/local for root. COVE_SHA256, when it is set, is the sum that the archive must have, as somebody you trust told it to you.
# Nothing is put into place before the sum of what was fetched is right.
set -eu

fail() {
	echo "install.sh: $1" >&2
	[ -z "${2:-}" ] || echo "  $2" >&2
	exit 1
}

main() {
	release=${1:-${COVE_RELEASE:-}}
	[ -n "$release" ] || fail "where is the release?" "say it: COVE_RELEASE=ADDRESS-OR-FOLDER sh install.sh"
	[ "$(uname -s)" = Linux ] || fail "cove runs on Linux, and this is $(uname -s)"
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no cove for the processor $(uname -m)" "releases are for x86-64 and 64-bit ARM" ;;
	esac
	for program in tar gzip sha256sum; do
		command -v "$program" >/dev/null || fail "$program is needed, and not here" "install it with your system's package manager"
	done
	if [ -z "${COVE_PREFIX:-}" ] && [ "$(id -u)" != 0 ] && [ -z "${HOME:-}" ]; then
		fail "HOME is not set" "set COVE_PREFIX to the folder to install into"
	fi
	prefix=${COVE_PREFIX:-$(if [ "$(id -u)" = 0 ]; then echo /usr/local; else echo "$HOME/.local"; fi)}

	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	fetch SHA256SUMS
	archive=$(sed -n "s/^[0-9a-f]\{64\}  \(cove-[0-9A-Za-z.-]*-linux-$arch\.tar\.gz\)\$/\1/p" "$tmp/SHA256SUMS")
	case $archive in
	'' | *[!0-9A-Za-z.-]*) fail "the file SHA256SUMS of $release does not name one archive for $arch" "is $release the folder or the address of a release?" ;;
	esac
	fetch "$archive"
	check "$archive"
	unpack "$archive"
	place
}

# fetch brings one file of the release to $tmp.
fetch() {
	case $release in
	http://* | https://*)
		echo "fetching $1"
		if command -v curl >/dev/null; then
			curl -fsSL --retry 2 --connect-timeout 20 -o "$tmp/$1" "${release%/}/$1" || fail "${release%/}/$1 cannot be fetched" "is $release the address of a release?"
		elif command -v wget >/dev/null; then
			wget -q -T 20 -O "$tmp/$1" "${release%/}/$1" || fail "${release%/}/$1 cannot be fetched" "is $release the address of a release?"
		else
			fail "curl or wget is needed, and neither is here" "install one of them, or fetch the release yourself and give its folder"
		fi
		;;
	*://*) fail "$release is not an address of HTTP" "give one that begins with https://, or a folder" ;;
	*)
		[ -f "$release/$1" ] || fail "there is no $1 in $release" "give the folder that has the files of a release"
		cp "$release/$1" "$tmp/$1"
		;;
	esac
}

# check compares the sum of an archive with those that were published and told.
check() {
	wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $1\$/\1/p" "$tmp/SHA256SUMS")
	sum=$(sha256sum "$tmp/$1" | cut -d' ' -f1)
	[ "$sum" = "$wanted" ] || fail "$1 is not what was published: its sum is $sum, and should be $wanted" "nothing was installed; fetch it again, and if that is no help, tell the person whom you have it from"
	[ -z "${COVE_SHA256:-}" ] || [ "$sum" = "$COVE_SHA256" ] || fail "$1 has the sum $sum, and COVE_SHA256 is $COVE_SHA256" "nothing was installed; is that the sum of this file?"
}

# unpack unpacks an archive below $tmp, and sees whether its program runs here.
unpack() {
	folder=$tmp/${1%.tar.gz}
	tar -xzf "$tmp/$1" -C "$tmp" || fail "$1 cannot be unpacked" "nothing was installed; is there room in ${TMPDIR:-/tmp}?"
	"$folder/cove" version >/dev/null || fail "the program does not run here" "nothing was installed; may programs in ${TMPDIR:-/tmp} be run? TMPDIR names another folder"
}

# place puts things where they belong, the program last and whole.
place() {
	share=$prefix/share
	mkdir -p "$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d" ||
		fail "cannot write below $prefix" "set COVE_PREFIX to a folder that you can write to"
	cp "$folder"/man/*.1 "$share/man/man1/"
	cp "$folder/completions/cove.bash" "$share/bash-completion/completions/cove"
	cp "$folder/completions/_cove" "$share/zsh/site-functions/_cove"
	cp "$folder/completions/cove.fish" "$share/fish/vendor_completions.d/cove.fish"
	if ! { cp "$folder/cove" "$prefix/bin/.cove.new" && chmod 755 "$prefix/bin/.cove.new" && mv -f "$prefix/bin/.cove.new" "$prefix/bin/cove"; }; then
		rm -f "$prefix/bin/.cove.new"
		fail "cannot write $prefix/bin/cove" "is there room on the disk?"
	fi
	echo "installed $("$prefix/bin/cove" version) in $prefix"
	case ":$PATH:" in
	*":$prefix/bin:"*) ;;
	*) echo "$prefix/bin is not in your PATH; add it: export PATH=\"$prefix/bin:\$PATH\"" ;;
	esac
	echo "next: cove doctor"
}

main "$@" # at the end, so that nothing runs of a script that came in part
