package toolbox

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/machine/process"
)

func (t *Toolbox) workDir(c *call) error {
	reply(c.w, http.StatusOK, map[string]string{"dir": c.s.Work})
	return nil
}

func (t *Toolbox) homeDir(c *call) error {
	reply(c.w, http.StatusOK, map[string]string{"dir": c.s.Home})
	return nil
}

func (t *Toolbox) version(c *call) error {
	reply(c.w, http.StatusOK, map[string]string{"version": t.o.Version})
	return nil
}

func (t *Toolbox) ports(c *call) error {
	all, err := t.o.Hub.Ports(c.Context(), c.who, c.id())
	if err != nil {
		return err
	}
	out := []int{}
	for _, p := range all {
		if !slices.Contains(out, p.Number) {
			out = append(out, p.Number)
		}
	}
	slices.Sort(out)
	reply(c.w, http.StatusOK, map[string]any{"ports": out})
	return nil
}

func (t *Toolbox) portInUse(c *call) error {
	n, err := strconv.Atoi(c.PathValue("port"))
	if err != nil || n < 1 || n > 65535 {
		return invalid("port: it is a number from 1 to 65535")
	}
	all, err := t.o.Hub.Ports(c.Context(), c.who, c.id())
	if err == nil {
		reply(c.w, http.StatusOK, map[string]bool{"isInUse": slices.ContainsFunc(all, func(p process.Port) bool { return p.Number == n })})
	}
	return err
}

// metrics tells what a sandbox has and takes, in bytes. How busy its processors are is not known, and left out.
func (t *Toolbox) metrics(c *call) error {
	now := time.Now().UTC()
	out := map[string]any{"cpuCount": c.s.Session.CPUs, "memTotal": c.s.Session.Memory, "memUsed": c.s.Session.Taken, "timestamp": now.Format(time.RFC3339Nano), "timestampUnix": now.Unix()}
	var text output
	exit, err := t.run(c, process.Start{Args: []string{"df", "-B1", "--output=size,used,avail", c.s.Work}, Env: c.s.environment(nil)}, nil, func(_ process.Kind, data []byte) { text.add(data) })
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if fields := strings.Fields(lines[len(lines)-1]); exit.Status() == 0 && len(fields) == 3 {
		for i, name := range []string{"diskTotal", "diskUsed", "diskFree"} {
			if n, err := strconv.ParseInt(fields[i], 10, 64); err == nil {
				out[name] = n
			}
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// setEnv changes the variables of a sandbox, for what is started from then on.
func (t *Toolbox) setEnv(c *call) error {
	var in struct {
		Set    map[string]string `json:"set"`
		Unset  []string          `json:"unset"`
		Prefix string            `json:"unsetValuePrefix"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	if t.o.SetEnv == nil {
		return &fault{http.StatusNotImplemented, "", "the variables of a sandbox are set when it is made, and cannot be changed here"}
	}
	env := c.s.environment(nil)
	if in.Prefix != "" {
		maps.DeleteFunc(env, func(_, value string) bool { return strings.HasPrefix(value, in.Prefix) })
	}
	for _, name := range in.Unset {
		delete(env, name)
	}
	maps.Copy(env, in.Set)
	if err := process.CheckEnvironment(env); err != nil {
		return invalid(problem.Of(err).Message)
	}
	if err := t.o.SetEnv(c.Context(), c.s, env); err != nil {
		return err
	}
	return done(c)
}

// entrypointSession answers for the session of a sandbox's own program, of which there is none.
func (t *Toolbox) entrypointSession(c *call) error {
	reply(c.w, http.StatusOK, shownSession{ID: entrypoint, Commands: []shownCommand{}})
	return nil
}

func (t *Toolbox) entrypointLogs(c *call) error {
	if c.URL.Query().Get("follow") == "true" && upgrades(c.Request) {
		return t.connected(c, func(context.Context, *socket) (websocket.StatusCode, string) {
			return websocket.StatusNormalClosure, ""
		})
	}
	replyLogs(c, &logs{})
	return nil
}

// noDesktop answers for a sandbox's desktop, which it has not.
func (t *Toolbox) noDesktop(*call) error {
	return &fault{http.StatusServiceUnavailable, "", "cove's sandboxes have no desktop, so computer use is not there; run a browser without a screen with process.exec, if your code needs one"}
}
