package deps

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cove/internal/python/deps/gateway"
	"cove/internal/python/deps/require"
)

// numpyTwo is when extension modules began to be built for the binary interface of NumPy 2 (its first release candidates are of that spring). Those that are older
// do not load beside it, and few of them say so in their requirements: https://numpy.org/devdocs/dev/depending_on_numpy.html
var numpyTwo = time.Date(2024, time.March, 1, 0, 0, 0, 0, time.UTC)

const beforeNumpyTwo = "numpy<2"

// predates says whether a wheel holds extension modules from before NumPy 2.
func predates(f gateway.File) bool {
	parts := strings.Split(strings.TrimSuffix(f.Name, ".whl"), "-")
	return len(parts) >= 5 && strings.HasPrefix(parts[len(parts)-2], "cp") && !f.Uploaded.IsZero() && f.Uploaded.Before(numpyTwo)
}

// stranded returns one of the old wheels that a solution puts beside NumPy 2 although it was built with NumPy 1, or "".
func (s solution) stranded(old []string) string {
	version, there := s.Versions["numpy"]
	if !there || (require.Requirement{Name: "numpy", Specifier: "<2"}).Allows(version) {
		return ""
	}
	for _, name := range old {
		if slices.Contains(s.Parents["numpy"], name) {
			return name
		}
	}
	return ""
}

// builtForOne says, in uv's words, what a wheel from before NumPy 2 should have said itself.
func (s solution) builtForOne(name string) string {
	return fmt.Sprintf("%s==%s depends on %s", name, s.Versions[name], beforeNumpyTwo)
}
