// Package config is cove's settings: one struct, filled from defaults, then the config file, then the environment; the
// command line comes last, in package cli. Settings are grouped by what they configure, as tables are in the file. A setting's tags are its
// documentation: Document prints it with the present values, and Reference is docs/configuration.md.
//
// A limit of 0 is no limit, here and in the Limits of packages hub, front and loop that settings become. What must not be without a limit has to be
// above 0, which Validate sees to, as those packages do. Defaults are values, written out by Default; no 0 stands for one. (packages.max_unknown is no
// limit of that kind: it says how many names an index may be told, and 0 is none.)
package config

import (
	"errors"
	"path/filepath"
	"runtime"
	"time"

	"cove/internal/core/memory"
)

// Config is every setting of cove. Tags: toml is the key in the table of the config file, flat the key at the file's top that older files have instead (a new setting has none),
// env the variable, flag an option of commands, doc the explanation, unit what a number counts, zero what 0 means (without it 0 is refused), default the
// default in words where it is no fixed value; secret values are never printed, and can be in files of their own (secrets.go).
type Config struct {
	Folders    Folders    `toml:"folders" doc:"Where things are kept on this machine. Folders are absolute paths, but for out."`
	Sandbox    Sandbox    `toml:"sandbox" doc:"What code runs in."`
	Images     Images     `toml:"images" doc:"OCI images that sessions begin from. More: [images.md](images.md)."`
	Packages   Packages   `toml:"packages" doc:"The Python environment, and what is installed on top of it. Why so: [packages.md](packages.md)."`
	Content    Content    `toml:"content" doc:"A look at code before it runs, and what is taken out of what it emits. More: [content.md](content.md)."`
	Tools      Tools      `toml:"tools" doc:"Servers of the Model Context Protocol whose tools code may call. More: [tools.md](tools.md)."`
	Network    Network    `toml:"network" doc:"Where sessions of the server may connect to when they ask for it. More: [network.md](network.md)."`
	Data       Data       `toml:"data" doc:"Data that libraries download when it is used, which cove data add fetches for all sandboxes. More: [packages.md](packages.md#data-of-libraries)."`
	Session    Sessions   `toml:"session" doc:"How long a session lasts, and what is kept of it. More: [sessions.md](sessions.md)."`
	Models     Models     `toml:"models" doc:"The language models, and how they are reached."`
	Turn       Turn       `toml:"turn" doc:"Bounds of one question to a model."`
	Serve      Serve      `toml:"serve" doc:"How cove serve is reached, and how it begins and ends. More: [serve.md](serve.md)."`
	OAuth      OAuth      `toml:"oauth" doc:"Access tokens of an authorization server, for clients of the Model Context Protocol. More: [mcp.md](mcp.md#access-tokens)."`
	Limits     Limits     `toml:"limits" doc:"What all users of a server have together, and what one request may bring."`
	Quota      Quota      `toml:"quota" doc:"What projects and keys may use that have no quota of their own (cove project quota, cove key quota)."`
	Store      Store      `toml:"store" doc:"The database, and how long it keeps what."`
	Encryption Encryption `toml:"encryption" doc:"Encryption of what is kept on the disk and in the database. More: [encryption.md](encryption.md)."`
	Backup     Backup     `toml:"backup" doc:"Backups that a server makes by itself, and how the object storage is reached in which cove backup keeps them. More: [operations.md](operations.md#backup)."`
	Log        Log        `toml:"log" doc:"What cove serve logs."`
	Remote     Remote     `toml:"remote" doc:"The server that commands use instead of this machine."`
	Terminal   Terminal   `toml:"terminal" doc:"How commands talk to a person. More: [terminal.md](terminal.md#language)."`

	// Image is what a command was told to begin from; "": the system of this machine.
	Image string `toml:"-"`
	// File is the config file that was looked for; Found says whether it was there.
	File  string `toml:"-"`
	Found bool   `toml:"-"`
	// Moved are the settings that the file has by their former keys, which go on to work.
	Moved []Moved `toml:"-"`
	// Exposed are the files of secrets that every user of the machine can read.
	Exposed []string `toml:"-"`
}

// Moved is a setting that a file has by its former key.
type Moved struct{ From, To string }

// defaultMemory is what a sandbox gets of which nothing is said.
const defaultMemory = 2 << 30

// Default returns the settings of a machine that sets nothing; Load decides about the folders that are empty here. getenv is os.Getenv or a stand-in.
func Default(getenv func(string) string) Config {
	home := getenv("HOME")
	data := getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		data = filepath.Join(home, ".local", "share")
	}
	return Config{
		Folders: Folders{Data: filepath.Join(data, "cove"), Out: "cove-out"},
		Sandbox: Sandbox{Engine: "gvisor", Memory: defaultMemory, CPUs: 2, Timeout: Duration(300e9), MaxOutput: 1 << 30, System: 4 << 30, ShareTemplate: true},
		Images:  Images{Size: 10 << 30, Total: 30 << 30, Fetches: 2, Timeout: Duration(15 * time.Minute)},
		Packages: Packages{
			Set: "standard", Install: true, BuildKnown: true, MinAge: Duration(3 * 24 * time.Hour), NewName: Duration(90 * 24 * time.Hour), MaxUnknown: 20,
			MaxCount: 150, MaxDownload: 4 << 30, MaxUnpacked: 12 << 30, MaxFiles: 200_000, Timeout: Duration(300e9),
		},
		Content: Content{Code: "note", Redact: List{"secrets"}},
		Data:    Data{Most: 4 << 30},
		Session: Sessions{Idle: Duration(900e9), Life: Duration(30 * 24 * time.Hour), UndoDepth: 10, Points: 100, PointsDisk: 1 << 30, Conversations: 5, CarryVariables: true, PlotStyle: true},
		Models:  Models{Vision: "auto", ConnectTimeout: Duration(10e9), FirstTokenTimeout: Duration(120e9), StallTimeout: Duration(60e9)},
		Serve:   Serve{Listen: List{"127.0.0.1:8700"}, DrainTimeout: Duration(30e9), Pool: 8, Page: true, PageScripts: true, Sharing: true},
		Turn:    Turn{MaxSteps: 20, MaxTokens: 1_000_000, MaxTime: Duration(900e9), ApprovalWait: Duration(time.Hour), ResultsWait: Duration(10 * time.Minute), Titles: true},
		Limits: Limits{
			SessionMemory: halfOfMemory(), Executions: 2 * runtime.NumCPU(), Queue: 16, Upload: 512 << 20, Output: 16 << 20, Volume: 10 << 30,
			RequestsAtOnce: 1024, RequestsPerSecond: 50, ProjectRequestsPerSecond: 200,
		},
		OAuth:  OAuth{Scope: "mcp", Claim: "sub"},
		Store:  Store{History: true},
		Backup: Backup{Every: Duration(24 * time.Hour), Keep: 7, Verify: true},
		Log:    Log{Format: "text", Level: "info"},
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

// Load returns the settings from defaults, the config file and the environment. With an error, which names the file or
// the variable at fault, the returned settings are still usable: what was wrong in them has its default.
func Load(getenv func(string) string) (Config, error) {
	c := Default(getenv)
	c.File = filePath(getenv)
	credentialsErr := c.readCredentials(getenv)
	fileErr := c.readFile(getenv("COVE_CONFIG") != "")
	envErr := c.readEnv(getenv)
	f := &c.Folders
	for _, one := range []struct {
		folder *string
		name   string
	}{
		{&f.Runtime, "run"}, // on disk, not in the system's runtime folder: that is memory, and workspaces can be large
		{&f.Sessions, "sessions"}, {&f.Server, "server"},
	} {
		if *one.folder == "" {
			*one.folder = filepath.Join(f.Data, one.name)
		}
	}
	return c, errors.Join(credentialsErr, fileErr, envErr)
}

func filePath(getenv func(string) string) string {
	if f := getenv("COVE_CONFIG"); f != "" {
		return f
	}
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(getenv("HOME"), ".config")
	}
	return filepath.Join(dir, "cove", "config.toml")
}

// ToolsFile is the file with the tool servers. required says that it was named, so that it has to be there.
func (c Config) ToolsFile() (path string, required bool) {
	if c.Tools.File != "" {
		return c.Tools.File, true
	}
	return filepath.Join(filepath.Dir(c.File), "tools.json"), false
}

// Isolated says whether the engine isolates code; see sandbox.Engine.
func (c Config) Isolated() bool { return c.Sandbox.Engine != "local" }

// Saves says whether the engine can save sessions; see sandbox.Saver.
func (c Config) Saves() bool { return c.Sandbox.Engine == "gvisor" }
