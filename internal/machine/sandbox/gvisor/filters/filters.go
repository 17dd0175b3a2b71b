// Package filters holds the seccomp programs that gVisor's sentry and gofer confine themselves with, compiled
// beforehand. gVisor would otherwise compile them whenever a sandbox starts, which takes some tens of milliseconds.
//
// The programs are data, one file per processor architecture, for the options that the engine's flags lead to. gVisor
// looks a program up by its options and compiles one itself when it finds none: with other options a start is slower, and
// confined alike. Values known only at run time, such as process IDs, are variables of a program that gVisor fills in.
//
// After an upgrade of gVisor the tests fail until go generate has written the files anew. It writes the one for the
// machine that it runs on; another architecture's takes an emulator:
//
//	GOARCH=arm64 CGO_ENABLED=0 go test -exec qemu-aarch64 -run '^TestProgramsAreCurrent$' . -update
package filters

import (
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	sentry "gvisor.dev/gvisor/runsc/boot/filter"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

//go:generate go test -run ^TestProgramsAreCurrent$ . -update

// gVisor's build fills these two with generated code, which its Go module lacks; nothing exported adds to them.

//go:linkname sentryPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var sentryPrograms map[string]precompiledseccomp.Program

//go:linkname goferPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferPrograms map[string]precompiledseccomp.Program

// Register makes the programs known to gVisor in this process. It is to be called once, before any filter is installed.
func Register() {
	// gVisor makes its maps at the first question, replacing what is there.
	sentry.ListPrecompiled()
	gofer.ListPrecompiled()
	users := map[string]map[string]precompiledseccomp.Program{"sentry": sentryPrograms, "gofer": goferPrograms}
	for _, p := range decode(programs) {
		if known := users[p.user]; known != nil { // else gVisor has moved its map, and compiles
			known[p.Name] = p.Program
		}
	}
}
