package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/commands/terminal"
	"cove/internal/core/config"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/llm/model/choose"
	"cove/internal/machine/sandbox"
	"cove/internal/python/debs"
	"cove/internal/python/deps/layer"
	"cove/internal/python/pyenv"
	"cove/internal/server/oauth"
	"cove/internal/sessions/ondisk"
)

type doctorCmd struct {
	Engine string `default:"${engine}" placeholder:"NAME" help:"Check this engine (default: ${engine})."`
	JSON   bool   `name:"json" help:"Print the result as one JSON object."`
}

// Help is the long help.
func (doctorCmd) Help() string {
	return `"sessions" says how many of the saved sessions can be continued by this cove. Before an upgrade, ask the new one; that changes no session.

Exit code: 0 when cove can run code here, 1 when something essential is missing.`
}

// check is one line of the doctor's report.
type check struct {
	Name   string `json:"name"`
	Status status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
	// Sessions are the sessions on the disk: the command line's and the server's.
	Sessions map[string]ondisk.Survey `json:"sessions,omitempty"`
}

type status string

const (
	good   status = "ok"
	warned status = "warning" // cove works, with less
	failed status = "failed"  // cove cannot run code
)

func (c *doctorCmd) run(ctx context.Context, p *Program) (int, error) {
	cfg := p.Config
	cfg.Sandbox.Engine = c.Engine
	var checks []check
	for _, look := range []func(context.Context, *Program, config.Config) check{
		checkSystem, checkGVisor, checkSettings, checkData, checkNamespaces, checkEngine, checkLimits, checkPython, checkEnvironment, checkSessions, checkUV, checkPackages, checkSystemPackages, checkFonts, checkModel, checkIssuer,
	} {
		one := look(ctx, p, cfg)
		checks = append(checks, one)
		if !c.JSON {
			printCheck(p, one)
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	ok := true
	for _, one := range checks {
		ok = ok && one.Status != failed
	}
	if c.JSON {
		if err := json.NewEncoder(p.Out).Encode(record{"ok": ok, "checks": checks}); err != nil {
			return 0, err
		}
	}
	if !ok {
		return 1, nil
	}
	return 0, nil
}

func printCheck(p *Program, c check) {
	fmt.Fprintf(p.Out, "%s %s %s\n", padded(lang.Text(string(c.Status)), 8), padded(lang.Text(c.Name), 14), lang.Text(c.Detail))
	if c.Fix != "" {
		room := strings.Repeat(" ", 24-terminal.Width(lang.Sprintf("fix: %s", "")))
		fmt.Fprintln(p.Out, room+lang.Sprintf("fix: %s", strings.ReplaceAll(lang.Text(c.Fix), "\n", "\n"+strings.Repeat(" ", 24))))
	}
}

// fromError makes a failed check of an error and its hint.
func fromError(name string, s status, err error) check {
	return check{Name: name, Status: s, Detail: oneLine(message(err)), Fix: problem.Of(err).Hint}
}

func checkSystem(context.Context, *Program, config.Config) check {
	var u unix.Utsname
	_ = unix.Uname(&u) // cannot fail with a valid pointer
	who := fmt.Sprintf("uid %d", os.Getuid())
	if me, err := user.Current(); err == nil {
		who = me.Username
	}
	return check{Name: "system", Status: good, Detail: fmt.Sprintf("%s/%s, kernel %s, as %s", runtime.GOOS, runtime.GOARCH, unix.ByteSliceToString(u.Release[:]), who)}
}

func checkSettings(_ context.Context, p *Program, cfg config.Config) check {
	err := p.ConfigErr
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return fromError("settings", failed, flatten(err)[0])
	}
	if len(cfg.Exposed) > 0 {
		return check{Name: "settings", Status: warned, Detail: "every user of this machine can read secrets in " + strings.Join(cfg.Exposed, ", "),
			Fix: "chmod 600 " + strings.Join(cfg.Exposed, " ")}
	}
	if !cfg.Found {
		return check{Name: "settings", Status: good, Detail: "no config file (" + cfg.File + "); defaults and environment"}
	}
	if len(cfg.Moved) > 0 {
		return movedSettings(cfg)
	}
	return check{Name: "settings", Status: good, Detail: cfg.File}
}

// movedSettings names the present keys of settings that the file has by former ones.
func movedSettings(cfg config.Config) check {
	var moved []string
	for _, m := range cfg.Moved {
		moved = append(moved, m.From+" is "+m.To+" now")
	}
	return check{Name: "settings", Status: warned, Detail: cfg.File + " has former keys, which go on to work: " + strings.Join(moved, ", "),
		Fix: "write them in their tables; `cove config` prints the settings so, but for secrets"}
}

func checkData(_ context.Context, _ *Program, cfg config.Config) check {
	c := check{Name: "data folder"}
	probe := filepath.Join(cfg.Folders.Data, fmt.Sprintf(".doctor-%d", os.Getpid()))
	err := os.MkdirAll(cfg.Folders.Data, 0o755)
	if err == nil {
		err = os.WriteFile(probe, make([]byte, 64<<10), 0o600)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		_ = os.Remove(probe)
		return check{Name: c.Name, Status: failed, Detail: "there is no room left on the disk of " + cfg.Folders.Data, Fix: pyenv.RoomHint(pyenv.Set(cfg.Packages.Set))}
	}
	if err != nil {
		c.Status, c.Detail, c.Fix = failed, "cannot write to "+cfg.Folders.Data+": "+problem.InWords(err, cfg.Folders.Data), "make it writable, or set COVE_HOME to a folder that is"
		return c
	}
	_ = os.Remove(probe)
	var fs unix.Statfs_t
	if err := unix.Statfs(cfg.Folders.Data, &fs); err != nil {
		c.Status, c.Detail = warned, cfg.Folders.Data+": the free space is not known"
		return c
	}
	return checkRoom(cfg, int64(fs.Bavail)*int64(fs.Bsize)) //nolint:unconvert // the types differ between architectures
}

// checkRoom says whether so many free bytes are enough for the data folder.
func checkRoom(cfg config.Config, free int64) check {
	c := check{Name: "data folder"}
	c.Status, c.Detail = good, fmt.Sprintf("%s, %s free", cfg.Folders.Data, decimalSize(free))
	switch room, text := pyenv.Room(pyenv.Set(cfg.Packages.Set)); {
	case len(environments(cfg)) == 0 && free < room:
		c.Status, c.Detail, c.Fix = failed, fmt.Sprintf("%s: the %s environment needs %s", c.Detail, cfg.Packages.Set, text), pyenv.RoomHint(pyenv.Set(cfg.Packages.Set))
	case free < layer.Reserve:
		c.Status, c.Detail, c.Fix = warned, fmt.Sprintf("%s: no packages are installed while that is less than %s", c.Detail, decimalSize(layer.Reserve)), "make room on the disk, or set COVE_HOME to a folder on a larger one"
	}
	return c
}

// appArmorFix is what root does so that this program, by its path, may make user namespaces. The packages for distributions do it for theirs.
func appArmorFix() string {
	self, err := os.Executable()
	if err != nil {
		self = "/usr/bin/cove"
	}
	return "as root, put these lines into /etc/apparmor.d/cove, and then: apparmor_parser -r /etc/apparmor.d/cove\n" +
		"abi <abi/4.0>,\ninclude <tunables/global>\nprofile cove \"" + self + "\" flags=(unconfined) { userns, }"
}

// checkNamespaces names the settings of the system that keep ordinary users from making user namespaces, and root's sandboxes from being other users.
func checkNamespaces(_ context.Context, p *Program, cfg config.Config) check {
	c := check{Name: "namespaces", Status: good, Detail: "user namespaces are allowed"}
	if os.Geteuid() == 0 {
		c.Detail = "not needed: running as root"
		engine, _ := p.Engine(cfg) // an error is the next check's
		if e, ok := engine.(sandbox.UserGiver); ok {
			c.Detail = "running as root; each sandbox is a user of its own"
			if why := e.WhyRoot(); why != "" {
				c.Status, c.Detail = warned, "the processes of sandboxes are root on this machine: "+why
			}
		}
		return c
	}
	const forGood = "   (and a line in /etc/sysctl.d to keep it)"
	for _, s := range []struct{ file, bad, fix string }{
		{"user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000" + forGood},
		{"kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1" + forGood},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", appArmorFix()},
	} {
		text, err := os.ReadFile(filepath.Join("/proc/sys", s.file))
		if err == nil && strings.TrimSpace(string(text)) == s.bad {
			// Whether it really stops cove is what the engine's own check finds out.
			return check{Name: "namespaces", Status: warned, Detail: s.file + " is " + s.bad + ": ordinary users may not make user namespaces freely",
				Fix: s.fix}
		}
	}
	return c
}

func checkEngine(ctx context.Context, p *Program, cfg config.Config) check {
	engine, err := p.Engine(cfg)
	if err != nil {
		return fromError("isolation", failed, err)
	}
	began := time.Now()
	if err := engine.Check(ctx); err != nil {
		return fromError("isolation", failed, err)
	}
	if !engine.Isolates() {
		return check{Name: "isolation", Status: warned, Detail: "engine " + engine.Name() + " isolates nothing", Fix: "use --engine gvisor"}
	}
	c := check{Name: "isolation", Status: good, Detail: fmt.Sprintf("a %s sandbox starts and stops in %d ms", engine.Name(), time.Since(began).Milliseconds())}
	if e, ok := engine.(sandbox.Describer); ok {
		isolation, warnings, err := e.Describe(ctx)
		if err != nil {
			return fromError("isolation", failed, err)
		}
		c.Detail += "; " + isolation
		if len(warnings) > 0 {
			c.Status, c.Detail = warned, c.Detail+". "+strings.Join(warnings, ". ")
		}
	}
	return c
}

func checkLimits(ctx context.Context, p *Program, cfg config.Config) check {
	c := check{Name: "limits", Status: warned, Detail: "memory and processor limits are not enforced by this engine"}
	engine, err := p.Engine(cfg)
	if err != nil {
		return c
	}
	e, ok := engine.(sandbox.Limiter)
	if !ok {
		return c
	}
	by, err := e.LimitsEnforcedBy(ctx)
	if err != nil {
		c.Detail = "not known: no sandbox starts"
		return c
	}
	if by == "watchdog" {
		c.Detail = "cove may not make cgroups here: memory is watched by polling, processors are limited by affinity"
		c.Fix = "for hard limits run cove as root, or as a service with Delegate=cpu memory pids on cgroup v2, as cove.service is"
		return c
	}
	return check{Name: "limits", Status: good, Detail: "memory and processors are limited by " + by}
}

func environments(cfg config.Config) []string {
	return pyenv.Built(cfg.Folders.Data, pyenv.Set(cfg.Packages.Set))
}

func checkPython(ctx context.Context, _ *Program, cfg config.Config) check {
	python, err := pyenv.FindPython(ctx, pyenv.Set(cfg.Packages.Set), cfg.Packages.Python)
	if err == nil {
		return check{Name: "python", Status: good, Detail: python.Version + ": " + python.Path}
	}
	return fromError("python", failed, err)
}

func checkEnvironment(_ context.Context, _ *Program, cfg config.Config) check {
	c := check{Name: "environment", Status: good, Detail: "the " + cfg.Packages.Set + " environment is built"}
	if len(environments(cfg)) == 0 {
		c.Status, c.Detail = warned, "the "+cfg.Packages.Set+" environment is not built yet; the first run builds it (once, some minutes)"
		c.Fix = "nothing to do; to build it now: cove run --packages " + cfg.Packages.Set + " -c pass"
	}
	return c
}

func checkUV(_ context.Context, _ *Program, cfg config.Config) check {
	if path, err := exec.LookPath("uv"); err == nil {
		return check{Name: "uv", Status: good, Detail: path}
	}
	if found, _ := filepath.Glob(filepath.Join(cfg.Folders.Data, "tools", "uv", "*")); len(found) > 0 {
		return check{Name: "uv", Status: good, Detail: "cove's own, in " + filepath.Join(cfg.Folders.Data, "tools", "uv")}
	}
	return check{Name: "uv", Status: good, Detail: "not here; cove gets it from your package index when it builds an environment"}
}

// indexPatience bounds how long the doctor waits for the package index.
const indexPatience = 10 * time.Second

func checkPackages(ctx context.Context, p *Program, cfg config.Config) check {
	c := check{Name: "packages", Status: good}
	switch {
	case !cfg.Packages.Install:
		c.Detail = "what code imports is not installed (packages.install is false)"
		return c
	case cfg.Packages.Offline:
		c.Detail = "offline: what code imports comes from earlier downloads and folders of wheels (packages.offline is true)"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	began := time.Now()
	index, known, err := p.Reach(ctx, cfg)
	switch {
	case err != nil:
		c = fromError("packages", warned, err)
	case !known:
		c.Detail = "what code imports is installed; the index is asked when the environment is there"
	default:
		c.Detail = fmt.Sprintf("what code imports is installed; %s answers in %d ms", cmp.Or(index, "the package index"), time.Since(began).Milliseconds())
	}
	return c
}

func checkSystemPackages(_ context.Context, _ *Program, cfg config.Config) check {
	c := check{Name: "programs", Status: good, Detail: "sandboxes have this machine's programs, and no system packages beside them (packages.system is empty)"}
	if len(cfg.Packages.System) == 0 {
		return c
	}
	store := debs.Store{Dir: filepath.Join(cfg.Folders.Data, debs.Folder)}
	for _, name := range cfg.Packages.System {
		if err := debs.CheckName(name); err != nil {
			return fromError(c.Name, failed, err)
		}
	}
	if _, err := store.Digest(cfg.Packages.System); err != nil {
		return fromError(c.Name, failed, err)
	}
	asked := cfg.Packages.System.String()
	if l := store.Find(cfg.Packages.System); l != nil {
		c.Detail = fmt.Sprintf("every sandbox has %s (%s, installed %s)", asked, decimalSize(l.Size), dateTime(l.Made))
		return c
	}
	c.Status, c.Detail = warned, fmt.Sprintf("%s: not installed yet beside the packages that this machine has now; the first run installs them (once, some minutes)", asked)
	c.Fix = "nothing to do; to install them now: cove run -c pass"
	return c
}

func checkIssuer(ctx context.Context, _ *Program, cfg config.Config) check {
	c := check{Name: "access tokens", Status: good, Detail: "cove serve takes none, but keys alone (oauth.issuer is not set)"}
	if cfg.OAuth.Issuer == "" {
		return c
	}
	if err := oauth.New(oauth.Set(cfg.OAuth)).Check(ctx); err != nil {
		c = fromError(c.Name, warned, err)
		c.Fix = "see that oauth.issuer (" + cfg.OAuth.Issuer + ") is the address of the authorization server, and that this machine reaches it"
		return c
	}
	c.Detail = cfg.OAuth.Issuer + " has keys that tokens can be looked at with"
	return c
}

func checkFonts(_ context.Context, _ *Program, cfg config.Config) check {
	if cfg.Packages.Set != string(pyenv.Minimal) {
		return check{Name: "fonts", Status: good, Detail: "the " + cfg.Packages.Set + " environment brings fonts for Chinese, Japanese and Korean"}
	}
	return check{Name: "fonts", Status: warned, Detail: "the minimal environment has no fonts and draws no charts", Fix: "use --packages standard"}
}

func checkModel(ctx context.Context, _ *Program, cfg config.Config) check {
	choice, err := choose.Model(ctx, cfg, "")
	if err != nil {
		return fromError("model", warned, err)
	}
	key := "no key"
	if choice.Key != "" {
		key = "key set"
	}
	address := choice.BaseURL
	if address == "" {
		address = "the provider's own address"
	}
	if choice.Because != "" {
		key += "; chosen because " + choice.Because
	}
	return check{Name: "model", Status: good, Detail: fmt.Sprintf("%s at %s, %s", oneLine(choice.String()), oneLine(redactURL(address)), key)}
}

// redactURL takes user and password out of an address.
func redactURL(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if at := strings.LastIndexByte(rest, '@'); ok && at >= 0 {
		return scheme + "://" + rest[at+1:]
	}
	return address
}
