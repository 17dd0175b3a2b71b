package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"cove/internal/memory"
)

// Serving is what `cove serve` needs beside the rest, and what commands need to be its clients.
type Serving struct {
	Listen         List     `toml:"listen" env:"COVE_LISTEN" doc:"addresses that cove serve listens on; :8700 is every address of the machine, unix:/PATH a socket"`
	Database       string   `toml:"database" env:"COVE_DATABASE" doc:"what keeps history, keys and sessions' records: the path of an SQLite file, or postgres://...; empty: cove.db in the data folder" secret:"true"`
	ServerFolder   string   `toml:"server_folder" env:"COVE_SERVER_FOLDER" doc:"folder that keeps the sessions and files of cove serve; empty: server in the data folder"`
	ServeModels    List     `toml:"serve_models" env:"COVE_SERVE_MODELS" doc:"the models that clients of the server may ask, as PROVIDER/NAME, the default first; empty: every model of the default's provider"`
	AllowHosts     List     `toml:"allow_hosts" env:"COVE_ALLOW_HOSTS" doc:"names that the server is called by; .example.com stands for all that end so, * for any; empty: any, but from this machine only this machine's own"`
	AllowOrigins   List     `toml:"allow_origins" env:"COVE_ALLOW_ORIGINS" doc:"web pages, as https://app.example.com, whose scripts may call the server"`
	TrustedProxies List     `toml:"trusted_proxies" env:"COVE_TRUSTED_PROXIES" doc:"addresses or networks of proxies that say in X-Forwarded-For whom they speak for"`
	TLSCert        string   `toml:"tls_cert" env:"COVE_TLS_CERT" doc:"file of the server's certificate, PEM; with tls_key it speaks HTTPS"`
	TLSKey         string   `toml:"tls_key" env:"COVE_TLS_KEY" doc:"file of the certificate's key, PEM"`
	Metrics        string   `toml:"metrics_listen" env:"COVE_METRICS_LISTEN" doc:"address for Prometheus, without keys; empty: only /metrics with the API, for keys of the server's admins"`
	DebugListen    string   `toml:"debug_listen" env:"COVE_DEBUG_LISTEN" doc:"address of this machine for pprof; empty: none"`
	DocsPublic     bool     `toml:"docs_public" env:"COVE_DOCS_PUBLIC" doc:"serve the pages that document the API without a key"`
	FirstKey       string   `toml:"first_key" env:"COVE_FIRST_KEY" doc:"the text of the key that cove serve makes when there is none, instead of a random one; cove key create on any database prints such a text" secret:"true"`
	LogFormat      string   `toml:"log_format" env:"COVE_LOG_FORMAT" doc:"what cove serve logs as: text or json"`
	LogLevel       string   `toml:"log_level" env:"COVE_LOG_LEVEL" doc:"debug, info, warn or error"`
	DrainTimeout   Duration `toml:"drain_timeout" env:"COVE_DRAIN_TIMEOUT" doc:"how long running work may take to end when the server is asked to end"`

	Pool           int      `toml:"pool" env:"COVE_POOL" doc:"sandboxes that are kept ready for new sessions, as far as a quarter of the free memory allows; 0 means none"`
	MaxSessions    int      `toml:"max_sessions" env:"COVE_MAX_SESSIONS" doc:"sessions in memory at once; what memory there is bounds them in any case; 0 means no limit besides"`
	MaxMemory      Size     `toml:"max_session_memory" env:"COVE_MAX_SESSION_MEMORY" doc:"memory that a session of the server may ask for; 0 means no limit"`
	MaxExecutions  int      `toml:"max_executions" env:"COVE_MAX_EXECUTIONS" doc:"executions that run at once, further ones wait; 0 means no limit"`
	MaxQueue       int      `toml:"max_queue" env:"COVE_MAX_QUEUE" doc:"executions that may wait for one kernel"`
	MaxUpload      Size     `toml:"max_upload" env:"COVE_MAX_UPLOAD" doc:"bytes of one file that is sent to the server"`
	ServerOutput   Size     `toml:"server_output" env:"COVE_SERVER_OUTPUT" doc:"bytes of output that the server keeps of one execution"`
	SessionLife    Duration `toml:"session_life" env:"COVE_SESSION_LIFE" doc:"after which a session of the server that nobody extends is deleted"`
	Retention      Duration `toml:"retention" env:"COVE_RETENTION" doc:"after which conversations and executions that nobody used are deleted; 0 means never"`
	AuditRetention Duration `toml:"audit_retention" env:"COVE_AUDIT_RETENTION" doc:"after which rows of the audit log are deleted; 0 means never"`

	RequestsPerSecond float64 `toml:"requests_per_second" env:"COVE_REQUESTS_PER_SECOND" doc:"requests that one key may make per second; 0 means no limit"`
	ProjectRequests   float64 `toml:"project_requests_per_second" env:"COVE_PROJECT_REQUESTS_PER_SECOND" doc:"requests that all keys of a project may make per second together; 0 means no limit"`
	RequestsAtOnce    int     `toml:"requests_at_once" env:"COVE_REQUESTS_AT_ONCE" doc:"requests and streams that are served at the same time"`

	ProjectSessions   int     `toml:"project_sessions" env:"COVE_PROJECT_SESSIONS" doc:"live sessions of a project that has no quota of its own; 0 means no limit, as in the next ones"`
	ProjectExecutions int     `toml:"project_executions" env:"COVE_PROJECT_EXECUTIONS" doc:"running executions of such a project"`
	ProjectCPU        float64 `toml:"project_cpu_seconds" env:"COVE_PROJECT_CPU_SECONDS" doc:"processor seconds of such a project in a day (UTC)"`
	ProjectDisk       Size    `toml:"project_disk" env:"COVE_PROJECT_DISK" doc:"bytes of files and paused sessions of such a project"`
	ProjectTokens     int64   `toml:"project_tokens" env:"COVE_PROJECT_TOKENS" doc:"tokens of such a project in a day"`
	KeySessions       int     `toml:"key_sessions" env:"COVE_KEY_SESSIONS" doc:"live sessions of one key"`
	KeyExecutions     int     `toml:"key_executions" env:"COVE_KEY_EXECUTIONS" doc:"running executions of one key"`
	KeyCPU            float64 `toml:"key_cpu_seconds" env:"COVE_KEY_CPU_SECONDS" doc:"processor seconds of one key in a day"`
	KeyTokens         int64   `toml:"key_tokens" env:"COVE_KEY_TOKENS" doc:"tokens of one key in a day"`

	History bool   `toml:"history" env:"COVE_HISTORY" doc:"keep what cove ask and cove chat do in the database, for cove history"`
	Server  string `toml:"server" env:"COVE_SERVER" doc:"address of a cove server that cove ask, chat, history and the like use instead of this machine"`
	Key     string `toml:"key" env:"COVE_KEY" doc:"the key for that server" secret:"true"`
}

func defaultServing() Serving {
	return Serving{
		Listen: List{"127.0.0.1:8700"}, LogFormat: "text", LogLevel: "info", DrainTimeout: Duration(30e9),
		Pool: 8, MaxMemory: halfOfMemory(), MaxExecutions: 2 * runtime.NumCPU(), MaxQueue: 16, MaxUpload: 512 << 20, ServerOutput: 16 << 20, SessionLife: Duration(30 * 24 * 3600e9),
		RequestsPerSecond: 50, ProjectRequests: 200, RequestsAtOnce: 1024,
		History: true,
	}
}

// halfOfMemory is half of what the machine has, or the process's groups leave it; where that is not known, what a session gets without asking.
func halfOfMemory() Size {
	room, err := memory.Machine{}.Look()
	if err != nil {
		return defaultMemory
	}
	return max(defaultMemory, Size(room.Total/2)&^(1<<20-1))
}

// SQLite returns the path of the database's file, or "" when the database is a server.
func (c Config) SQLite() string {
	switch {
	case c.Database == "":
		return filepath.Join(c.Data, "cove.db")
	case strings.HasPrefix(c.Database, "postgres://"), strings.HasPrefix(c.Database, "postgresql://"):
		return ""
	}
	return strings.TrimPrefix(c.Database, "sqlite://")
}

// DatabaseAddress is the database as package store takes it.
func (c Config) DatabaseAddress() string {
	if file := c.SQLite(); file != "" {
		return file
	}
	return c.Database
}

// Proxies are the networks of TrustedProxies.
func (s Serving) Proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range s.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, alone := netip.ParseAddr(text)
			if alone != nil {
				return nil, fmt.Errorf("has addresses and networks such as 10.0.0.0/8, not %q", text)
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		out = append(out, network)
	}
	return out, nil
}

func (s Serving) validate(bad func(name, why string) error) error {
	if len(s.Listen) == 0 {
		return bad("listen", "must name an address, such as 127.0.0.1:8700")
	}
	for _, at := range slices.Concat(s.Listen, List{s.Metrics, s.DebugListen}) {
		if at == "" || strings.HasPrefix(at, "unix:/") {
			continue
		}
		if _, _, err := net.SplitHostPort(at); err != nil || strings.HasPrefix(at, "unix:") {
			return bad("listen, metrics_listen and debug_listen", fmt.Sprintf("have addresses with a port, such as 127.0.0.1:8700 or :8700, or unix:/PATH, not %q", at))
		}
	}
	if _, err := s.Proxies(); err != nil {
		return bad("trusted_proxies", err.Error())
	}
	scheme, rest, isURL := strings.Cut(s.Database, ":")
	known := scheme == "postgres" || scheme == "postgresql" || scheme == "sqlite"
	whole := strings.HasPrefix(rest, "//")
	switch {
	case isURL && known != whole:
		return bad("database", fmt.Sprintf("is the path of an SQLite file, sqlite://... or postgres://..., not %.30q", scheme+":"))
	case s.ServerFolder != "" && !filepath.IsAbs(s.ServerFolder):
		return bad("server_folder", "must be an absolute path")
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return bad("tls_cert and tls_key", "go together")
	case s.LogFormat != "text" && s.LogFormat != "json":
		return bad("log_format", fmt.Sprintf("is text or json, not %q", s.LogFormat))
	case s.LogLevel != "debug" && s.LogLevel != "info" && s.LogLevel != "warn" && s.LogLevel != "error":
		return bad("log_level", fmt.Sprintf("is debug, info, warn or error, not %q", s.LogLevel))
	case s.DrainTimeout <= 0 || s.SessionLife <= 0:
		return bad("drain_timeout and session_life", "must be above 0")
	case s.RequestsAtOnce < 1:
		return bad("requests_at_once", "must be above 0")
	case s.MaxQueue < 1 || s.MaxUpload < 1 || s.ServerOutput < 1:
		return bad("max_queue, max_upload and server_output", "must be above 0")
	case s.Server != "" && !strings.HasPrefix(s.Server, "http://") && !strings.HasPrefix(s.Server, "https://"):
		return bad("server", "must be an address such as http://127.0.0.1:8700")
	}
	for _, m := range s.ServeModels {
		if !strings.Contains(m, "/") && !strings.HasPrefix(m, "replay:") {
			return bad("serve_models", fmt.Sprintf("has names such as openai/NAME, not %q", m))
		}
	}
	return nil
}
