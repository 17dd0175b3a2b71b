package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"cove/internal/core/lang"
	"cove/internal/core/problem"
)

// Validate says which setting is out of its range, or returns nil.
func (c Config) Validate() error {
	for _, f := range c.fields() {
		if f.negative() {
			return bad(f.key(), "must be a number of 0 or more")
		}
	}
	for _, check := range []func() error{c.Folders.validate, c.Sandbox.validate, c.Packages.validate, c.Tools.validate, c.Data.validate, c.Models.validate, c.Serve.validate, c.OAuth.validate, c.Store.validate, c.Backup.validate, c.Log.validate, c.Remote.validate, c.Terminal.validate} {
		if err := check(); err != nil {
			return err
		}
	}
	for _, f := range c.fields() {
		if f.limitless() {
			return bad(f.key(), "must be above 0")
		}
	}
	return nil
}

func bad(name, why string) error { return problem.New(problem.ConfigInvalid, name+" "+why) }

func (f Folders) validate() error {
	switch {
	case f.Out == "":
		return bad("folders.out", "must name a folder")
	case !filepath.IsAbs(f.Data) || !filepath.IsAbs(f.Runtime):
		return bad("folders.data and folders.runtime", "must be absolute paths; set COVE_HOME, or HOME")
	case f.Sessions != "" && !filepath.IsAbs(f.Sessions):
		return bad("folders.sessions", "must be an absolute path")
	case f.Server != "" && !filepath.IsAbs(f.Server):
		return bad("folders.server", "must be an absolute path")
	case f.Ahead != "" && !filepath.IsAbs(f.Ahead):
		return bad("folders.ahead", "must be an absolute path")
	}
	return nil
}

func (s Sandbox) validate() error {
	switch {
	case s.Engine != "gvisor" && s.Engine != "docker" && s.Engine != "local":
		return bad("the engine", fmt.Sprintf("is gvisor, docker or local, not %q", s.Engine))
	case s.Memory < 128<<20:
		return bad("memory", "must be at least 128MiB: Python itself needs that much")
	case !(s.CPUs >= 0.01) || s.CPUs > 4096:
		return bad("cpus", "must be a number of cores from 0.01 on")
	case s.MaxOutput == 0:
		return bad("max-output", "must be above 0")
	}
	return nil
}

func (p Packages) validate() error {
	switch {
	case p.Set != "standard" && p.Set != "standard-2024" && p.Set != "minimal":
		return bad("packages", fmt.Sprintf("is standard, standard-2024 or minimal, not %q", p.Set))
	case p.Index != "" && !strings.Contains(p.Index, "://"):
		return bad("packages.index", "must be an address, such as an https:// one")
	}
	return nil
}

func (t Tools) validate() error {
	if t.File != "" && !filepath.IsAbs(t.File) {
		return bad("tools.file", "must be an absolute path")
	}
	return nil
}

func (d Data) validate() error {
	for _, place := range d.Places {
		if library, at, ok := strings.Cut(place, "="); !ok || library == "" || at == "" {
			return bad("data.places", fmt.Sprintf("has entries such as nltk=https://mirror.example/nltk_data, not %q", place))
		}
	}
	return nil
}

func (m Models) validate() error {
	for _, name := range m.Serve {
		if !strings.Contains(name, "/") && !strings.HasPrefix(name, "replay:") {
			return bad("models.serve", fmt.Sprintf("has names such as openai/NAME, not %q", name))
		}
	}
	if m.Vision != "auto" && m.Vision != "on" && m.Vision != "off" {
		return bad("models.vision", fmt.Sprintf("is auto, on or off, not %q", m.Vision))
	}
	_, err := m.Known()
	return err
}

func (s Serve) validate() error {
	if len(s.Listen) == 0 {
		return bad("serve.listen", "must name an address, such as 127.0.0.1:8700")
	}
	for _, at := range s.Listen {
		if err := checkListen("serve.listen", at); err != nil {
			return err
		}
	}
	if err := checkListen("serve.metrics_listen", s.MetricsListen); err != nil {
		return err
	}
	if err := checkListen("serve.debug_listen", s.DebugListen); err != nil {
		return err
	}
	if _, err := s.Proxies(); err != nil {
		return bad("serve.trusted_proxies", err.Error())
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return bad("serve.tls_cert and serve.tls_key", "go together")
	}
	return nil
}

// checkListen returns what is wrong with an address to listen on; "" is none.
func checkListen(setting, at string) error {
	if at == "" || strings.HasPrefix(at, "unix:/") {
		return nil
	}
	_, port, err := net.SplitHostPort(at)
	if err == nil {
		_, err = net.LookupPort("tcp", port) // a number, or a name such as http
	}
	if err == nil && !strings.HasPrefix(at, "unix:") {
		return nil
	}
	return problem.New(problem.ConfigInvalid, fmt.Sprintf("%s must be an address with a port, not %q", setting, at)).
		WithHint("write 127.0.0.1:8700 for this machine alone, as in --listen 127.0.0.1:8700, :8700 for all its addresses, or unix:/PATH for a socket")
}

func (s Store) validate() error {
	scheme, rest, isURL := strings.Cut(s.Database, ":")
	known := scheme == "postgres" || scheme == "postgresql" || scheme == "sqlite"
	if isURL && known != strings.HasPrefix(rest, "//") {
		return bad("store.database", fmt.Sprintf("is the path of an SQLite file, sqlite://... or postgres://..., not %.30q", scheme+":"))
	}
	return nil
}

func (b Backup) validate() error {
	switch {
	case (b.S3AccessKey == "") != (b.S3SecretKey == ""):
		return bad("backup.s3_access_key and backup.s3_secret_key", "go together")
	case strings.Contains(b.S3Endpoint, "@"):
		return bad("backup.s3_endpoint", "must be an address without credentials, which are backup.s3_access_key and backup.s3_secret_key")
	}
	return nil
}

func (l Log) validate() error {
	switch {
	case l.Format != "text" && l.Format != "json":
		return bad("log.format", fmt.Sprintf("is text or json, not %q", l.Format))
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, l.Level):
		return bad("log.level", fmt.Sprintf("is debug, info, warn or error, not %q", l.Level))
	}
	return nil
}

func (r Remote) validate() error {
	if r.Server != "" && !strings.HasPrefix(r.Server, "http://") && !strings.HasPrefix(r.Server, "https://") {
		return bad("remote.server", "must be an address such as http://127.0.0.1:8700")
	}
	return nil
}

func (t Terminal) validate() error {
	switch lang.Language(t.Language) {
	case "", lang.English, lang.Chinese:
		return nil
	}
	return bad("terminal.language", fmt.Sprintf("is en or zh, not %q", t.Language))
}
