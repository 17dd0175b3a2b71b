package cli

import (
	"fmt"
	"runtime"

	"cove/internal/core/config"
	"cove/internal/core/memory"
	"cove/internal/core/problem"
)

// possible refuses a sandbox with limits that this machine cannot give. The defaults are never refused: on a machine that is smaller than they are, a sandbox has
// what there is.
func possible(c config.Config) error {
	usual := config.Default(func(string) string { return "" }).Sandbox
	if has := runtime.NumCPU(); c.Sandbox.CPUs > max(float64(has), usual.CPUs) {
		return problem.New(problem.Usage, fmt.Sprintf("a sandbox cannot have %v processor cores: this machine has %d", c.Sandbox.CPUs, has)).
			WithHint(fmt.Sprintf("ask for at most --cpus %d; the setting sandbox.cpus says what is given without it", has))
	}
	room, err := memory.Machine{}.Look()
	if err == nil && int64(c.Sandbox.Memory) > max(room.Total, int64(usual.Memory)) {
		return problem.New(problem.Usage, fmt.Sprintf("a sandbox cannot have %s of memory: this machine has %s for all its programs", humanSize(int64(c.Sandbox.Memory)), humanSize(room.Total))).
			WithHint(fmt.Sprintf("ask for at most --memory %dM; the setting sandbox.memory says what is given without it", room.Total>>20))
	}
	return nil
}
