package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/commands/cli"
	"cove/internal/core/config"
	"cove/internal/core/memory"
	"cove/internal/core/problem"
	"cove/internal/core/sdnotify"
	"cove/internal/core/seal"
	"cove/internal/core/telemetry"
	"cove/internal/http/api"
	"cove/internal/http/compat/anthropic"
	"cove/internal/http/compat/daytona"
	"cove/internal/http/compat/daytona/toolbox"
	"cove/internal/http/compat/dify"
	"cove/internal/http/compat/e2b"
	"cove/internal/http/compat/gemini"
	"cove/internal/http/compat/jupyter"
	"cove/internal/http/compat/librechat"
	"cove/internal/http/compat/mcp"
	"cove/internal/http/compat/openai"
	"cove/internal/http/compat/sandboxai"
	"cove/internal/http/front"
	"cove/internal/http/protocol"
	"cove/internal/http/webpage"
	"cove/internal/machine/egress"
	"cove/internal/machine/sandbox"
	"cove/internal/machine/sandbox/gvisor"
	"cove/internal/machine/volume"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
	"cove/internal/server/oauth"
	"cove/internal/server/ownership"
	"cove/internal/server/ports"
	"cove/internal/server/store"
	"cove/internal/sessions/ondisk"
	"cove/web"
)

const (
	// goodbye bounds the wait for the collector of traces, and for the database, after everything was paused or given up.
	goodbye = 2 * time.Second
	// serveCommand is what the server is called in the words of others.
	serveCommand = "cove serve"
)

// server is `cove serve`: everything that it has, in the order in which it is made. It is taken apart in the other order.
type server struct {
	cfg      config.Config
	about    cli.ServerAbout
	log      *slog.Logger
	undo     []func()
	lock     *folderLock
	sealer   *seal.Sealer  // what stored files and sessions are sealed with; nil: they are not
	secret   []byte        // what clients keep for the server is sealed with it
	stopping chan struct{} // closed when the server takes nothing new
	seen     *telemetry.Telemetry
	store    *store.Store
	owner    *ownership.Owner
	warm     *warmPool
	hub      *hub.Hub
	accounts *auth.Accounts
	issuer   *oauth.Verifier // nil: keys alone
	front    *front.Server
	backups  *backups // nil: none are made by themselves

	starter sdnotify.Socket // who started this process
}

var _ cli.Server = (*server)(nil)

// newServer makes everything that a server needs and has it listen. Whatever is likely to be wrong is looked at before what takes long.
func newServer(version string, by sdnotify.Socket) func(context.Context, config.Config, cli.ServerOptions) (cli.Server, error) {
	return func(ctx context.Context, c config.Config, o cli.ServerOptions) (cli.Server, error) {
		s := &server{cfg: c, starter: by}
		s.about = cli.ServerAbout{Version: version, Engine: c.Sandbox.Engine, Packages: c.Packages.Set, Folder: c.Folders.Server, Models: []string{}}
		if c.Found {
			s.about.Config = c.File
		}
		steps := []func(context.Context, cli.ServerOptions) error{s.openLog, s.openFolder, s.openStore, s.openBackups, s.openHub, s.openFront, s.openSandboxes, s.recover, s.openAccounts, s.greetIssuer}
		for _, step := range steps {
			if err := step(ctx, o); err != nil {
				s.close()
				return nil, err
			}
		}
		return s, nil
	}
}

func (s *server) close() {
	for k := len(s.undo) - 1; k >= 0; k-- {
		s.undo[k]()
	}
	s.undo = nil
}

func (s *server) later(undo func()) { s.undo = append(s.undo, undo) }

// About implements cli.Server.
func (s *server) About() cli.ServerAbout { return s.about }

func (s *server) openLog(ctx context.Context, o cli.ServerOptions) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.cfg.Log.Level)); err != nil {
		return problem.New(problem.ConfigInvalid, "log.level is debug, info, warn or error").WithCause(err)
	}
	log, finish := telemetry.NewLog(o.Log, telemetry.LogOptions{
		JSON: s.cfg.Log.Format == "json", Level: level, Secrets: []string{s.cfg.Models.OpenAIKey, s.cfg.Models.AnthropicKey, s.cfg.Serve.FirstKey, s.cfg.Remote.Key, databasePassword(s.cfg), s.cfg.Encryption.Key, s.cfg.Backup.S3SecretKey, s.cfg.Backup.S3SessionToken},
	})
	s.log = log
	s.later(finish)
	var err error
	s.seen, err = telemetry.New(ctx, telemetry.Options{
		Version: s.about.Version, Getenv: os.Getenv, Console: o.Log,
		Errors: func(err error) { log.Warn("traces are not sent", "error", err) },
	})
	if err != nil {
		return err
	}
	s.later(func() {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		defer cancel()
		_ = s.seen.Close(ctx)
	})
	return nil
}

// openFolder takes the server's folder and looks whether the engine can run here.
func (s *server) openFolder(ctx context.Context, o cli.ServerOptions) error {
	engine, err := newEngine(s.cfg)
	if err != nil {
		return err
	}
	if !engine.Isolates() {
		return problem.New(problem.EngineCannotSave, "the engine "+engine.Name()+" isolates nothing, and cannot save sessions").
			WithHint("cove serve takes the engine gvisor, or docker, whose sessions cannot be paused")
	}
	if err := engine.Check(ctx); err != nil {
		return withDoctor(err)
	}
	if err := sayIsolation(ctx, engine, o.Progress); err != nil {
		return err
	}
	lock, err := lockServer(s.cfg.Folders.Server)
	if err != nil {
		return err
	}
	s.lock = lock
	s.later(lock.release)
	for _, path := range s.cfg.Exposed {
		s.log.Warn("every user of this machine can read the file of a secret", "file", path)
	}
	if s.sealer, err = diskSealer(s.cfg); err != nil {
		return err
	}
	for _, dir := range []string{serverSessions(s.cfg).Dir, s.blobs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return unwritableFolder(dir, err)
		}
	}
	s.secret, err = serverSecret(filepath.Join(s.cfg.Folders.Server, "secret.key"))
	return err
}

func (s *server) blobs() string { return serverFiles(s.cfg) }

func (s *server) openStore(ctx context.Context, _ cli.ServerOptions) error {
	db, err := openStore(ctx, s.cfg, s.log)
	if err != nil {
		return err
	}
	s.later(func() { _ = db.Close() })
	s.store = db
	s.owner, err = ownership.Register(ctx, ownership.Options{Store: db, Folder: s.cfg.Folders.Server, Alone: true, Command: serveCommand, Log: s.log})
	if err != nil {
		return err
	}
	s.later(s.release)
	s.about.Database = databaseName(s.cfg)
	s.accounts = &auth.Accounts{Store: db, Audit: db}
	s.later(s.accounts.Wait)
	return nil
}

// release has the server be no owner any more. What it has not ended is the next one's to end.
func (s *server) release() {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if err := s.owner.Release(ctx); err != nil {
		s.log.Warn("the server is still in the database; others find out that it has ended", "error", err)
	}
}

// openAccounts makes the first key, and a code for a browser, last of all: a start that fails would keep it from everybody for ever.
func (s *server) openAccounts(ctx context.Context, o cli.ServerOptions) (err error) {
	if s.about.Key, err = s.accounts.Found(ctx, s.cfg.Serve.FirstKey); err != nil {
		return err
	}
	if !s.cfg.Serve.Page || strings.HasPrefix(s.about.Address, "unix:") {
		return nil
	}
	s.about.Page = s.about.Address + "/"
	if !o.Code {
		return nil
	}
	code, err := s.accounts.NewCode(ctx, auth.Local(), "", "")
	if problem.Is(err, problem.NotFound) || problem.Is(err, problem.Denied) { // the local user is a member no more
		return nil
	}
	s.about.Page = cli.PageAddress(s.about.Address, code)
	return err
}

// openHub makes the hub. What its sessions stand on is there a little later, before it is asked for anything.
func (s *server) openHub(context.Context, cli.ServerOptions) (err error) {
	c := s.cfg
	asked := &models{cfg: c, store: s.store}
	network := hub.NetworkLimits{Bytes: int64(c.Network.Bytes), Pace: int64(c.Network.Pace), Audit: c.Network.Audit}
	if network.Rules, err = egress.ParseRules(c.Network.Allow, c.Network.Deny); err != nil {
		return err
	}
	rules := hub.CodeRules{Policy: hub.CodePolicy(c.Content.Code), Rules: c.Content.Rules}
	redaction := hub.Redaction{Kinds: c.Content.Redact}
	if err = errors.Join(rules.Check(), redaction.Check()); err != nil {
		return err
	}
	begins, err := newCallersImages(c)
	if err != nil {
		return err
	}
	folders, why := s.volumes()
	tools, err := newToolServers(c, s.log, s.seen, s.about.Version)
	if err != nil {
		return err
	}
	s.later(tools.Close)
	s.hub, err = hub.New(hub.Options{
		Store: s.store.By(s.owner.ID, s.owner.Fenced), Owner: s.owner, Audit: s.store, Log: s.log, Telemetry: s.seen, Models: asked, Connector: asked, About: aboutModels(c),
		Sessions: serverSessions(c), Contents: s.blobs(), Sealer: s.sealer, Base: s.base(), Unsaved: !c.Saves(),
		Prepare: func(ctx context.Context, b ondisk.Base) (*ondisk.Ground, error) { return s.warm.Prepare(ctx, b) },
		Limits:  hubLimits(c),
		Network: network,
		System:  systemOf(c),
		Volumes: folders, NoVolumes: why,
		Images:        begins,
		ToolServers:   tools,
		Code:          rules,
		Redaction:     redaction,
		Quotas:        s.quotas,
		Instructions:  s.accounts.InstructionsOf,
		Asker:         s.accounts.Present,
		Turns:         cli.TurnLimits(c),
		Titles:        c.Turn.Titles,
		SessionMemory: sessionMemory(c),
		Room:          machine().Look,
		Shed:          func() bool { return s.warm != nil && s.warm.Shed() },
		Unstartable:   s.unstartable,
	})
	return err
}

// volumes returns the folders of volumes, or why there are none.
func (s *server) volumes() (folders hub.VolumeFolders, why string) {
	engine, err := newEngine(s.cfg)
	if err != nil {
		return nil, problem.Of(err).Message
	}
	keeper, ok := engine.(sandbox.VolumeKeeper)
	if !ok {
		return nil, "the engine " + engine.Name() + " has none"
	}
	if why := keeper.WithoutVolumes(); why != "" {
		return nil, why
	}
	return volume.Folders{Dir: volumes(s.cfg), Own: keeper.OwnVolume}, ""
}

// machine is what the server and its sandboxes have.
func machine() memory.Machine { return memory.Machine{Outside: gvisor.Held} }

func (s *server) base() ondisk.Base {
	return ondisk.Base{Engine: s.cfg.Sandbox.Engine, Packages: s.cfg.Packages.Set, Limits: ondisk.LimitsOf(sandbox.Limits{Memory: int64(s.cfg.Sandbox.Memory), CPUs: s.cfg.Sandbox.CPUs})}
}

func (s *server) quotas(ctx context.Context, project, key string) (ofProject, ofKey *hub.Quota, err error) {
	p, k, err := s.accounts.Quotas(ctx, project, key)
	if err != nil {
		return nil, nil, err
	}
	if ofProject, err = quotaOf(p); err != nil {
		return nil, nil, err
	}
	ofKey, err = quotaOf(k)
	return ofProject, ofKey, err
}

func quotaOf(text []byte) (*hub.Quota, error) {
	if text == nil {
		return nil, nil
	}
	var q hub.Quota
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("read a quota: %w", err)
	}
	return &q, nil
}

// openFront takes the addresses. Requests that come before Serve wait.
func (s *server) openFront(ctx context.Context, _ cli.ServerOptions) error {
	c := s.cfg
	proxies, err := c.Serve.Proxies()
	if err != nil {
		return err
	}
	s.stopping = make(chan struct{})
	surfaces, err := s.surfaces()
	if err != nil {
		return err
	}
	s.front, err = front.New(front.Options{
		Accounts:  s.accounts,
		Surfaces:  surfaces,
		Ready:     s.hub.Ready,
		Telemetry: s.seen, Log: s.log, Version: s.about.Version,
		Listen: c.Serve.Listen, Cert: c.Serve.TLSCert, Key: c.Serve.TLSKey, Metrics: c.Serve.MetricsListen, Debug: c.Serve.DebugListen,
		Hosts: c.Serve.AllowHosts, Origins: c.Serve.AllowOrigins, Proxies: proxies, PublicDocs: c.Serve.DocsPublic,
		Limits: frontLimits(c),
	})
	if err != nil {
		return err
	}
	addresses, err := s.front.Listen(ctx)
	if err != nil {
		return err
	}
	s.about.Address = s.reachable(addresses[0])
	s.about.Outside = s.fromOutside(addresses)
	s.about.Metrics, s.about.Debug = c.Serve.MetricsListen, c.Serve.DebugListen
	s.lock.sign(s.about.Address)
	return nil
}

// surfaces are all that the server offers.
func (s *server) surfaces() ([]protocol.Surface, error) {
	c := s.cfg
	names, err := s.portNames()
	if err != nil {
		return nil, err
	}
	address := func() ports.Address {
		a, _ := s.portNames() // by now with the port that the server has got
		return a
	}
	out := []protocol.Surface{
		api.Surface(api.Options{Hub: s.hub, Accounts: s.accounts, Audit: s.store, Version: s.about.Version, Log: s.log, MaxFile: int64(c.Limits.Upload), NoScripts: !c.Serve.PageScripts, NoSharing: !c.Serve.Sharing,
			ProjectQuota: standardQuota(c), Ports: address,
			Ready: func(ctx context.Context) error { return s.front.Ready(ctx) }}),
		dify.Surface(dify.Options{Hub: s.hub, Log: s.log, MaxOutput: min(int64(c.Limits.Output), 4<<20), Timeout: programTime(c), AtOnce: c.Limits.Executions}),
		librechat.Surface(librechat.Options{Hub: s.hub, Log: s.log, MaxFiles: int64(c.Limits.Upload) + 1<<20, Timeout: time.Duration(c.Sandbox.Timeout)}),
		openai.Surface(openai.Options{Hub: s.hub, Log: s.log, MaxFile: int64(c.Limits.Upload), Memory: mostMemory(c), Secret: s.secret, Stopping: s.stopping}),
		anthropic.Surface(anthropic.Options{Hub: s.hub, Log: s.log, MaxFile: int64(c.Limits.Upload), Timeout: time.Duration(c.Sandbox.Timeout),
			Steps: c.Turn.MaxSteps, Time: time.Duration(c.Turn.MaxTime), Tokens: c.Turn.MaxTokens}),
		jupyter.Surface(jupyter.Options{Hub: s.hub, Accounts: s.accounts, Log: s.log, Version: s.about.Version, Python: func() string { return s.about.Python }, Secret: s.secret, Stopping: s.stopping}),
	}
	out = append(out, gemini.Surface(gemini.Options{Hub: s.hub, Log: s.log, MaxFile: int64(c.Limits.Upload), Secret: s.secret}))
	tokens, err := s.tokens()
	if err != nil {
		return nil, err
	}
	out = append(out, mcp.Surfaces(mcp.Options{Hub: s.hub, Log: s.log, Version: s.about.Version, Timeout: time.Duration(c.Sandbox.Timeout), OAuth: tokens})...)
	out = append(out, sandboxai.Surfaces(sandboxai.Options{Hub: s.hub, Log: s.log, Timeout: time.Duration(c.Sandbox.Timeout)})...)
	// The last is that of the ports' names, where they have some; some of them are of sandboxes of E2B's and of Daytona's clients.
	of := ports.Surfaces(ports.Options{Hub: s.hub, Address: names, Refuse: api.Refuse})
	var named *protocol.Surface
	if names.Host != "" {
		named, of = &of[len(of)-1], of[:len(of)-1]
	}
	out = append(out, of...)
	forDaytona := daytona.New(daytona.Options{
		Hub: s.hub, Log: s.log, Secret: s.secret, Root: c.Sandbox.Root, Disk: sandbox.DefaultLimits().Workspace, Version: s.about.Version, Address: address,
	})
	forDaytona.Toolbox = toolbox.New(toolbox.Options{Hub: s.hub, Log: s.log, Version: s.about.Version, SetEnv: forDaytona.SetEnv, Stopping: s.stopping})
	out = append(out, forDaytona.Surfaces()...)
	if named != nil {
		byName := forDaytona.Names(*named)
		named = &byName
	}
	out = append(out, e2b.Surfaces(e2b.Options{
		Hub: s.hub, Log: s.log, Secret: s.secret, Names: named, Root: c.Sandbox.Root, Disk: sandbox.DefaultLimits().Workspace,
		Address: address,
	})...)
	if !c.Serve.Page {
		return out, nil
	}
	shown, err := webpage.Surface(webpage.Options{Files: web.Dist(), Refuse: api.Refuse, Scripts: c.Serve.PageScripts, Taken: []string{"api", "v1", "anthropic", "gemini", "mcp", "librechat", "jupyter", "daytona", "health", "metrics", "debug", ".well-known"}})
	return append(out, shown), err
}

// unstartable is why no session can start.
func (s *server) unstartable() error {
	if s.warm == nil {
		return nil
	}
	return s.warm.Failure()
}

// openSandboxes has the environment and the warm interpreter ready, which takes long the first time.
func (s *server) openSandboxes(ctx context.Context, o cli.ServerOptions) error {
	s.tell("", "preparing the Python environment and the warm interpreter")
	warm, err := newWarmPool(ctx, s.about.Version, s.cfg, s.base(), o.Progress)
	if err != nil {
		return err
	}
	s.warm = warm
	s.about.Python, s.about.Ready = warm.ground.Python, warm.size
	s.seen.Gauge("cove_sandboxes_ready", "Sandboxes that wait for a new session.", func() float64 { return float64(warm.Ready()) })
	s.seen.Gauge("cove_sessions_stored", "Sessions on the disk, those in memory included.", telemetry.Costly(s.stored))
	for _, folder := range []struct{ name, path string }{{"data", s.cfg.Folders.Data}, {"server", s.cfg.Folders.Server}} {
		s.seen.Gauge("cove_disk_free_bytes", "Free room on the disk that a folder is on.", telemetry.Costly(func() float64 { return disk(folder.path).free }), "folder", folder.name)
		s.seen.Gauge("cove_disk_size_bytes", "Size of the disk that a folder is on.", telemetry.Costly(func() float64 { return disk(folder.path).size }), "folder", folder.name)
	}
	s.seen.Gauge("cove_sandboxes_booted", "Empty sandboxes that wait for a session that is resumed or forked.", func() float64 { return float64(warm.booted.ready()) })
	return nil
}

// stored is how many sessions the disk has.
func (s *server) stored() float64 {
	entries, err := os.ReadDir(serverSessions(s.cfg).Dir)
	if err != nil {
		return 0
	}
	count := 0
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			count++
		}
	}
	return float64(count)
}

type diskRoom struct{ free, size float64 } // bytes

func disk(folder string) diskRoom {
	var fs unix.Statfs_t
	if unix.Statfs(folder, &fs) != nil {
		return diskRoom{}
	}
	return diskRoom{float64(fs.Bavail) * float64(fs.Bsize), float64(fs.Blocks) * float64(fs.Bsize)}
}

// recover brings the records in line with the machine, and finds out what models there are.
func (s *server) recover(ctx context.Context, _ cli.ServerOptions) error {
	if err := s.hub.Recover(telemetry.With(ctx, s.seen)); err != nil {
		return fmt.Errorf("take back what the last server left: %w", err)
	}
	if err := s.survey(ctx); err != nil {
		return err
	}
	found, err := (&models{cfg: s.cfg, store: s.store}).List(ctx)
	if err != nil && !problem.Has(err, problem.NoModel) {
		s.about.NoModel = problem.Of(err).Message
	}
	for _, m := range found {
		s.about.Models = append(s.about.Models, m.ID)
	}
	return nil
}
