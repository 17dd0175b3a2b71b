package pyenv

import "strings"

// Pin is one distribution of a lock.
type Pin struct {
	Name, Version string
	Marker        string   // where it is installed, as PEP 508 has it; "": everywhere
	SHA256        []string // the hashes that a file of it may have, in hexadecimal digits
}

// Pins returns the distributions of a lock in its order: one of Locks, or another that uv wrote with hashes.
func Pins(lock []byte) []Pin {
	var pins []Pin
	for line := range strings.Lines(string(lock)) {
		line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), `\`))
		if sum, is := strings.CutPrefix(line, "--hash=sha256:"); is {
			if len(pins) > 0 {
				pins[len(pins)-1].SHA256 = append(pins[len(pins)-1].SHA256, sum)
			}
			continue
		}
		what, marker, _ := strings.Cut(line, ";")
		if name, version, is := strings.Cut(what, "=="); is {
			pins = append(pins, Pin{Name: strings.TrimSpace(name), Version: strings.TrimSpace(version), Marker: strings.TrimSpace(marker)})
		}
	}
	return pins
}
