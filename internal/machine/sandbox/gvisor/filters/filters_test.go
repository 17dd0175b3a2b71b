//go:build !race

// With the race detector compiled in, gVisor's filters allow more; programs for that are not kept.

package filters_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform"
	_ "gvisor.dev/gvisor/pkg/sentry/platform/systrap"
	sentry "gvisor.dev/gvisor/runsc/boot/filter"
	sentryconfig "gvisor.dev/gvisor/runsc/boot/filter/config"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
	goferconfig "gvisor.dev/gvisor/runsc/fsgofer/filter/config"

	"cove/internal/machine/sandbox/gvisor/filters"
)

// update is what go generate gives.
var update = flag.Bool("update", false, "write the file of programs for this architecture")

//go:linkname sentryRules gvisor.dev/gvisor/runsc/boot/filter/config.rules
func sentryRules(sentryconfig.Options, precompiledseccomp.Values) (allow, deny seccomp.SyscallRules)

//go:linkname goferRules gvisor.dev/gvisor/runsc/fsgofer/filter/config.rules
func goferRules(goferconfig.Options, precompiledseccomp.Values) (allow, deny seccomp.SyscallRules)

// systrap is gVisor's platform of that name with a defect made good: a rule of it has the ID of the process that
// compiles in it, which is not the one that will run.
type systrap struct{ platform.SeccompInfo }

func (s systrap) SyscallFilters(vars precompiledseccomp.Values) seccomp.SyscallRules {
	own := func(pid uint64) seccomp.SyscallRule {
		return seccomp.PerArg{seccomp.EqualTo(pid), seccomp.AnyValue{}, seccomp.EqualTo(unix.SIGKILL)}
	}
	rules := s.SeccompInfo.SyscallFilters(vars)
	upstream := rules.Get(unix.SYS_RT_TGSIGQUEUEINFO)
	if want := own(uint64(os.Getpid())); !reflect.DeepEqual(upstream, want) {
		panic(fmt.Sprintf("gVisor's rule for rt_tgsigqueueinfo is %v, expected %v", upstream, want))
	}
	rules.Remove(unix.SYS_RT_TGSIGQUEUEINFO)
	return rules.Set(unix.SYS_RT_TGSIGQUEUEINFO, own(vars.GetUint64("self_pid")))
}

// compiled is a program together with the options that it is for.
type compiled struct {
	user string
	precompiledseccomp.Program
	// fresh compiles the filter as gVisor does for this very process.
	fresh func() seccomp.Program
	vars  precompiledseccomp.Values
}

// asProgram puts rules together as gVisor does. What no rule allows kills the process; gVisor would ask the kernel of the
// machine that compiles whether it can do that, and every kernel that gVisor runs on can.
func asProgram(allow, deny seccomp.SyscallRules, o seccomp.ProgramOptions) seccomp.Program {
	o.DefaultAction = seccomp.KillProcess
	return seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: deny.Copy()}, {Rules: allow.Copy(), Action: seccomp.Allow}},
		Options:  o,
	}
}

func precompile(t *testing.T, c compiled, name string, render func(precompiledseccomp.Values) seccomp.Program) compiled {
	t.Helper()
	p, err := precompiledseccomp.Precompile(name, slices.Collect(maps.Keys(c.vars)), func(v precompiledseccomp.Values) *seccomp.Program {
		p := render(v)
		return &p
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Program = p
	return c
}

// compile makes the programs for all options that the engine's flags lead to: systrap, no network, sockets of the
// host may be dialed but not made, and the file system reached directly or through the gofer.
func compile(t *testing.T) []compiled {
	t.Helper()
	constructor, err := platform.Lookup("systrap")
	if err != nil {
		t.Fatal(err)
	}
	info := constructor.PrecompiledSeccompInfo()[0]
	var out []compiled
	for _, direct := range []bool{true, false} {
		o := sentryconfig.Options{Platform: info, HostFilesystem: direct, ControllerFD: 11}
		fixed := o
		fixed.Platform = systrap{info}
		out = append(out, precompile(t, compiled{
			user: "sentry",
			vars: o.Vars(),
			fresh: func() seccomp.Program {
				allow, deny := sentryconfig.Rules(o)
				return asProgram(allow, deny, sentryconfig.SeccompOptions(o))
			},
		}, o.ConfigKey(), func(v precompiledseccomp.Values) seccomp.Program {
			allow, deny := sentryRules(fixed, v)
			return asProgram(allow, deny, sentryconfig.SeccompOptions(fixed))
		}))
		for _, served := range []bool{true, false} {
			o := goferconfig.Options{UDSOpenEnabled: true, DirectFS: direct, LisafsNeeded: served}
			out = append(out, precompile(t, compiled{
				user: "gofer",
				vars: o.Vars(),
				fresh: func() seccomp.Program {
					allow, deny := goferconfig.Rules(o)
					return asProgram(allow, deny, seccomp.ProgramOptions{})
				},
			}, o.ConfigKey(), func(v precompiledseccomp.Values) seccomp.Program {
				allow, deny := goferRules(o, v)
				return asProgram(allow, deny, seccomp.ProgramOptions{})
			}))
		}
	}
	return out
}

// encode writes what the package decodes.
func encode(version string, all []compiled) []byte {
	var out []byte
	number := func(n int) { out = binary.LittleEndian.AppendUint32(out, uint32(n)) }
	text := func(s string) { number(len(s)); out = append(out, s...) }
	text(version)
	for _, c := range all {
		text(c.user)
		text(c.Name)
		number(len(c.VarOffsets))
		for _, name := range slices.Sorted(maps.Keys(c.VarOffsets)) {
			text(name)
			number(len(c.VarOffsets[name]))
			for _, place := range c.VarOffsets[name] {
				number(place)
			}
		}
		number(len(c.Bytecode32))
		for _, word := range c.Bytecode32 {
			number(int(word))
		}
	}
	return out
}

// gVisorVersion returns the version that go.mod asks for.
func gVisorVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`gvisor\.dev/gvisor (v\S+)`).FindSubmatch(content)
	if found == nil {
		t.Fatal("go.mod does not name gVisor's version")
	}
	return string(found[1])
}

// TestProgramsAreCurrent fails when gVisor would compile something else than what is in the file, as after an upgrade.
// That the file was written by another process also shows that no program contains what only one process has.
func TestProgramsAreCurrent(t *testing.T) {
	t.Parallel()
	file := "programs_" + runtime.GOARCH + ".bin"
	now := encode(gVisorVersion(t), compile(t))
	if *update {
		if err := os.WriteFile(file, now, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, now) {
		t.Errorf("%s is not what gVisor compiles today; run go generate in its folder and read what changed in gVisor's filters", file)
	}
}

// TestOtherProgramsAreCurrent looks after the architectures that this machine cannot compile for.
func TestOtherProgramsAreCurrent(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		content, err := os.ReadFile("programs_" + arch + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		if want := encode(gVisorVersion(t), nil); !bytes.HasPrefix(content, want) {
			t.Errorf("the programs for %s were not compiled by gVisor %s: run go generate on such a machine, or in an emulator", arch, want[4:])
		}
	}
}

// TestProgramsAreRegistered asks gVisor for each program and renders it, the way gVisor does when it installs one. The
// result must be, to the instruction, the filter that gVisor would otherwise compile.
func TestProgramsAreRegistered(t *testing.T) {
	t.Parallel()
	filters.Register()
	known := map[string]func(string) (precompiledseccomp.Program, bool){"sentry": sentry.GetPrecompiled, "gofer": gofer.GetPrecompiled}
	all := compile(t)
	if got, want := len(sentry.ListPrecompiled())+len(gofer.ListPrecompiled()), len(all); got != want {
		t.Errorf("%d programs are registered, expected %d", got, want)
	}
	for _, c := range all {
		got, ok := known[c.user](c.Name)
		if !ok {
			t.Errorf("%s: gVisor finds no program for %s", c.user, c.Name)
			continue
		}
		if d := cmp.Diff(c.Program, got); d != "" {
			t.Errorf("%s: %s differs from what was compiled (-compiled +registered)\n%s", c.user, c.Name, d)
		}
		code, err := got.RenderInstructions(c.vars)
		if err != nil {
			t.Fatal(err)
		}
		fresh := c.fresh()
		want, _, err := fresh.Build()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, code); d != "" {
			t.Errorf("%s: %s is not the filter that gVisor compiles in this process (-compiled +registered)\n%s", c.user, c.Name, d)
		}
	}
}
