package gateway

import (
	"strings"

	"cove/internal/python/deps/require"
)

const maxName = 255 // bytes, as file systems have it

// parseName reads a file's name as PEP 427 and PEP 625 have it, and says whether it belongs to the project.
func parseName(project, file string) (ver string, wheel, ok bool) {
	if len(file) > maxName {
		return "", false, false
	}
	if strings.HasSuffix(file, ".whl") {
		parts := strings.Split(strings.TrimSuffix(file, ".whl"), "-")
		if len(parts) != 5 && len(parts) != 6 || !isVersion(parts[1]) || require.Normalize(parts[0]) != project {
			return "", false, false
		}
		for _, tag := range parts[2:] {
			if !consists(tag, "_.") {
				return "", false, false
			}
		}
		if len(parts) == 6 && !isDigit(parts[2][0]) {
			return "", false, false
		}
		// A wheel's name has _ where a local version may have - or _.
		return strings.ReplaceAll(parts[1], "_", "-"), true, true
	}
	stem, found := strings.CutSuffix(file, ".tar.gz")
	if !found {
		stem, found = strings.CutSuffix(file, ".zip")
	}
	if !found {
		return "", false, false
	}
	// The names of old files have hyphens of their own.
	for at := range len(stem) {
		if stem[at] == '-' && require.Normalize(stem[:at]) == project && isVersion(stem[at+1:]) {
			return stem[at+1:], false, true
		}
	}
	return "", false, false
}

// isVersion checks of PEP 440 no more than that a version can do no harm and begins with a number.
func isVersion(text string) bool {
	digits := strings.TrimLeft(text, "vV")
	return consists(text, ".!+_-") && len(text)-len(digits) <= 1 && digits != "" && isDigit(digits[0])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// consists tells whether a text is of letters, digits and those other characters, and is not empty.
func consists(text, others string) bool {
	for i := range len(text) {
		c := text[i]
		if !isDigit(c) && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return text != ""
}

// plainName tells whether a name can be that of a file in a folder.
func plainName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '.' || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`/\"'<>&%?#:*|;`, c) >= 0 {
			return false
		}
	}
	return true
}
