// Package config is cove's settings: one struct, filled from defaults, then the config file, then the environment; the
// command line comes last, in package cli. A setting's tags are its documentation, and Document prints it.
//
// A limit of 0 is no limit, here and in the Limits of packages hub, httpd and interpreter that settings become. What must not be without a limit has to be
// above 0, which Validate sees to, as those packages do. Defaults are values, written out by Default; no 0 stands for one. (packages_max_unknown is no
// limit of that kind: it says how many names an index may be told, and 0 is none.)
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"cove/internal/problem"
)

// Config is every setting of cove. Tags: toml is the key in the config file, env the variable, doc the explanation;
// secret values are never printed.
type Config struct {
	Data      string   `toml:"data" env:"COVE_HOME" doc:"folder that keeps the Python environments, downloads and history"`
	Runtime   string   `toml:"runtime" env:"COVE_RUNTIME" doc:"folder for the state of running sandboxes; on a local disk; empty: run in the data folder"`
	Sessions  string   `toml:"sessions" env:"COVE_SESSIONS" doc:"folder that keeps the sessions with a name; empty: sessions in the data folder"`
	Engine    string   `toml:"engine" env:"COVE_ENGINE" doc:"how code is isolated: gvisor, or local (no isolation)"`
	Packages  string   `toml:"packages" env:"COVE_PACKAGES" doc:"the Python environment: standard (pandas, matplotlib, ...) or minimal (IPython alone)"`
	Python    string   `toml:"python" env:"COVE_PYTHON" doc:"the Python that environments are built from; empty: the newest suitable one on the PATH"`
	Out       string   `toml:"out" env:"COVE_OUT" doc:"folder that receives figures and files"`
	Timeout   Duration `toml:"timeout" env:"COVE_TIMEOUT" doc:"wall clock of one execution; 0 means none"`
	Memory    Size     `toml:"memory" env:"COVE_MEMORY" doc:"memory of one sandbox"`
	CPUs      float64  `toml:"cpus" env:"COVE_CPUS" doc:"processor cores of one sandbox"`
	MaxOutput Size     `toml:"max_output" env:"COVE_MAX_OUTPUT" doc:"bytes of output that one execution may deliver"`

	PackagesInstall     bool     `toml:"packages_install" env:"COVE_PACKAGES_INSTALL" doc:"install what code imports and the Python environment lacks"`
	PackagesIndex       string   `toml:"packages_index" env:"COVE_PACKAGES_INDEX" doc:"address of the package index; empty: the one that uv or pip is set to use"`
	PackagesAllow       List     `toml:"packages_allow" env:"COVE_PACKAGES_ALLOW" doc:"packages that are approved however little known they are; a * at the end makes a prefix"`
	PackagesAllowOnly   bool     `toml:"packages_allow_only" env:"COVE_PACKAGES_ALLOW_ONLY" doc:"install nothing but packages_allow, dependencies included"`
	PackagesDeny        List     `toml:"packages_deny" env:"COVE_PACKAGES_DENY" doc:"packages, or NAME==VERSION, that are never installed, not as dependencies either; a * at the end makes a prefix"`
	PackagesMinAge      Duration `toml:"packages_min_age" env:"COVE_PACKAGES_MIN_AGE" doc:"how long a file must have been on the index before it is used, since most malicious ones are found within days; 0 means at once"`
	PackagesMinAgeFree  List     `toml:"packages_min_age_exempt" env:"COVE_PACKAGES_MIN_AGE_EXEMPT" doc:"packages that packages_min_age does not hold for, such as your own; a * at the end makes a prefix"`
	PackagesNewName     Duration `toml:"packages_new_name" env:"COVE_PACKAGES_NEW_NAME" doc:"how long a project outside the 15,000 best known must have existed before it is installed without approval"`
	PackagesMaxUnknown  int      `toml:"packages_max_unknown" env:"COVE_PACKAGES_MAX_UNKNOWN" doc:"names outside the 15,000 best known that the code of one session may have looked up on the index, since each tells the index what it says; 0 means none"`
	PackagesOffline     bool     `toml:"packages_offline" env:"COVE_PACKAGES_OFFLINE" doc:"ask no index; use what was downloaded before and folders of wheels"`
	PackagesBuild       bool     `toml:"packages_build" env:"COVE_PACKAGES_BUILD" doc:"build packages that have no wheel from source, in a throw-away sandbox"`
	PackagesMaxCount    int      `toml:"packages_max_count" env:"COVE_PACKAGES_MAX_COUNT" doc:"packages that one installation may bring, dependencies included"`
	PackagesMaxDownload Size     `toml:"packages_max_download" env:"COVE_PACKAGES_MAX_DOWNLOAD" doc:"bytes that one installation may download"`
	PackagesMaxUnpacked Size     `toml:"packages_max_unpacked" env:"COVE_PACKAGES_MAX_UNPACKED" doc:"bytes that one installation may take on the disk"`
	PackagesMaxFiles    int      `toml:"packages_max_files" env:"COVE_PACKAGES_MAX_FILES" doc:"files that one installation may bring"`
	PackagesTimeout     Duration `toml:"packages_timeout" env:"COVE_PACKAGES_TIMEOUT" doc:"wall clock of one installation"`

	SessionIdle Duration `toml:"session_idle" env:"COVE_SESSION_IDLE" doc:"how long a session that was brought into memory may be unused before it is paused; 0 means for ever"`
	UndoDepth   int      `toml:"undo_depth" env:"COVE_UNDO_DEPTH" doc:"how many executions of a session can be undone; each takes a snapshot's room on the disk"`

	CarryVariables bool `toml:"carry_variables" env:"COVE_CARRY_VARIABLES" doc:"carry variables over by pickle, as far as that goes, where an upgrade of cove makes a session start anew with its files"`

	Model     string   `toml:"model" env:"COVE_MODEL" doc:"the model for cove ask, as PROVIDER/NAME: openai/..., anthropic/..., ollama/... or replay:FILE"`
	MaxSteps  int      `toml:"max_steps" env:"COVE_MAX_STEPS" doc:"how often a model may run code for one question"`
	MaxTokens int64    `toml:"max_tokens" env:"COVE_MAX_TOKENS" doc:"tokens that one question may use, in and out together; 0 means no limit"`
	MaxTime   Duration `toml:"max_time" env:"COVE_MAX_TIME" doc:"wall clock of one question; 0 means none"`

	ConnectTimeout    Duration `toml:"model_connect_timeout" env:"COVE_MODEL_CONNECT_TIMEOUT" doc:"wait for a connection to a model service"`
	FirstTokenTimeout Duration `toml:"model_first_token_timeout" env:"COVE_MODEL_FIRST_TOKEN_TIMEOUT" doc:"silence of a model before its answer begins; local models may need longer to load"`
	StallTimeout      Duration `toml:"model_stall_timeout" env:"COVE_MODEL_STALL_TIMEOUT" doc:"silence of a model in the middle of its answer"`

	OpenAIKey        string `toml:"openai_api_key" env:"OPENAI_API_KEY" doc:"key for openai/... models" secret:"true"`
	OpenAIBaseURL    string `toml:"openai_base_url" env:"OPENAI_BASE_URL" doc:"address of any OpenAI-compatible server; empty: OpenAI itself"`
	AnthropicKey     string `toml:"anthropic_api_key" env:"ANTHROPIC_API_KEY" doc:"key for anthropic/... models" secret:"true"`
	AnthropicBaseURL string `toml:"anthropic_base_url" env:"ANTHROPIC_BASE_URL" doc:"address of an Anthropic-compatible server; empty: Anthropic itself"`
	OllamaHost       string `toml:"ollama_host" env:"OLLAMA_HOST" doc:"address of an Ollama server; empty: 127.0.0.1:11434"`

	Serving

	// File is the config file that was looked for; Found says whether it was there.
	File  string `toml:"-"`
	Found bool   `toml:"-"`
}

// defaultMemory is what a sandbox gets of which nothing is said.
const defaultMemory = 2 << 30

// Default returns the settings of a machine that sets nothing; Load decides about Runtime and Sessions. getenv is os.Getenv or a stand-in.
func Default(getenv func(string) string) Config {
	home := getenv("HOME")
	data := getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) {
		data = filepath.Join(home, ".local", "share")
	}
	return Config{
		Data:      filepath.Join(data, "cove"),
		Engine:    "gvisor",
		Packages:  "standard",
		Out:       "cove-out",
		Timeout:   Duration(300e9),
		Memory:    defaultMemory,
		CPUs:      2,
		MaxOutput: 1 << 30,

		PackagesInstall:     true,
		PackagesMinAge:      Duration(3 * 24 * time.Hour),
		PackagesNewName:     Duration(90 * 24 * time.Hour),
		PackagesMaxUnknown:  20,
		PackagesMaxCount:    150,
		PackagesMaxDownload: 4 << 30,
		PackagesMaxUnpacked: 12 << 30,
		PackagesMaxFiles:    200_000,
		PackagesTimeout:     Duration(300e9),

		SessionIdle:    Duration(900e9),
		UndoDepth:      10,
		CarryVariables: true,

		MaxSteps:  20,
		MaxTokens: 1_000_000,
		MaxTime:   Duration(900e9),

		ConnectTimeout:    Duration(10e9),
		FirstTokenTimeout: Duration(120e9),
		StallTimeout:      Duration(60e9),

		Serving: defaultServing(),
	}
}

// Load returns the settings from defaults, the config file and the environment. With an error, which names the file or
// the variable at fault, the returned settings are still usable: what was wrong in them has its default.
func Load(getenv func(string) string) (Config, error) {
	c := Default(getenv)
	c.File = filePath(getenv)
	fileErr := c.readFile(getenv("COVE_CONFIG") != "")
	envErr := c.readEnv(getenv)
	if c.Runtime == "" {
		// On disk, not in the system's runtime folder: that is memory, and workspaces can be large.
		c.Runtime = filepath.Join(c.Data, "run")
	}
	if c.Sessions == "" {
		c.Sessions = filepath.Join(c.Data, "sessions")
	}
	if c.ServerFolder == "" {
		c.ServerFolder = filepath.Join(c.Data, "server")
	}
	return c, errors.Join(fileErr, envErr)
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

func (c *Config) readFile(required bool) error {
	next := *c
	text, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return nil
	}
	if err != nil {
		return problem.New(problem.Invalid, "config_unreadable", "cannot read the config file "+c.File).WithCause(err)
	}
	c.Found = true
	meta, err := toml.Decode(string(text), &next)
	if err != nil {
		return problem.New(problem.Invalid, "config_invalid", "the config file "+c.File+" has a mistake").WithCause(err).
			WithHint("run `cove config` to see every setting and what it takes")
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return problem.New(problem.Invalid, "config_unknown_key",
			fmt.Sprintf("the config file %s has a setting that cove does not know: %s", c.File, unknown[0])).
			WithHint("run `cove config` to see every setting")
	}
	next.Found = true
	*c = next
	return nil
}

func (c *Config) readEnv(getenv func(string) string) error {
	var all error
	for _, f := range c.fields() {
		name := f.tag.Get("env")
		text := getenv(name)
		if text == "" {
			continue
		}
		if err := set(f.value, text); err != nil {
			all = errors.Join(all, problem.New(problem.Invalid, "config_invalid", "the variable "+name+" has a value that does not fit").WithCause(err))
		}
	}
	return all
}

type field struct {
	tag   reflect.StructTag
	value reflect.Value
}

// fields lists the settings in their order; bookkeeping fields without an env tag are left out.
func (c *Config) fields() []field { return fieldsOf(reflect.ValueOf(c).Elem()) }

func fieldsOf(v reflect.Value) []field {
	var out []field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			out = append(out, fieldsOf(v.Field(i))...)
		case f.Tag.Get("env") != "":
			out = append(out, field{tag: f.Tag, value: v.Field(i)})
		}
	}
	return out
}

// negative says that a setting is a number below 0, or none at all (NaN): the config file and the command line can say so.
func (f field) negative() bool {
	switch {
	case f.value.CanInt():
		return f.value.Int() < 0
	case f.value.CanFloat():
		return !(f.value.Float() >= 0)
	}
	return false
}

func set(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		return boolean(text, p)
	case *int:
		return number(text, strconv.Atoi, p)
	case *int64:
		return number(text, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }, p)
	case *float64:
		return number(text, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, p)
	case interface{ UnmarshalText([]byte) error }:
		return p.UnmarshalText([]byte(text))
	default:
		return fmt.Errorf("a setting of type %s cannot be read from text", v.Type())
	}
	return nil
}

func boolean(text string, into *bool) error {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "yes", "on":
		*into = true
	case "0", "false", "no", "off":
		*into = false
	default:
		return fmt.Errorf("%q is not true or false", text)
	}
	return nil
}

func number[T int | int64 | float64](text string, parse func(string) (T, error), into *T) error {
	n, err := parse(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return fmt.Errorf("%q is not a number of 0 or more", text)
	}
	*into = n
	return nil
}

// Isolated says whether the engine isolates code; see sandbox.Engine.
func (c Config) Isolated() bool { return c.Engine != "local" }

// Saves says whether the engine can save sessions; see sandbox.Saver.
func (c Config) Saves() bool { return c.Engine != "local" }

// Validate says which setting is out of its range, or returns nil.
func (c Config) Validate() error {
	bad := func(name, why string) error {
		return problem.New(problem.Invalid, "config_invalid", name+" "+why)
	}
	for _, f := range c.fields() {
		if f.negative() {
			return bad(f.tag.Get("toml"), "must be a number of 0 or more")
		}
	}
	switch {
	case c.Engine != "gvisor" && c.Engine != "local":
		return bad("the engine", fmt.Sprintf("is gvisor or local, not %q", c.Engine))
	case c.Packages != "standard" && c.Packages != "minimal":
		return bad("packages", fmt.Sprintf("is standard or minimal, not %q", c.Packages))
	case c.Memory < 128<<20:
		return bad("memory", "must be at least 128MiB: Python itself needs that much")
	case !(c.CPUs >= 0.01) || c.CPUs > 4096:
		return bad("cpus", "must be a number of cores from 0.01 on")
	case c.MaxOutput <= 0:
		return bad("max-output", "must be above 0")
	case c.UndoDepth < 1:
		return bad("undo_depth", "must be at least 1")
	case c.Sessions != "" && !filepath.IsAbs(c.Sessions):
		return bad("sessions", "must be an absolute path")
	case c.MaxSteps < 1:
		return bad("max_steps", "must be at least 1")
	case c.ConnectTimeout <= 0 || c.FirstTokenTimeout <= 0 || c.StallTimeout <= 0:
		return bad("model_connect_timeout, model_first_token_timeout and model_stall_timeout", "must be above 0")
	case c.PackagesMaxCount < 1 || c.PackagesMaxFiles < 1 || c.PackagesMaxDownload < 1 || c.PackagesMaxUnpacked < 1 || c.PackagesTimeout <= 0:
		return bad("packages_max_count, packages_max_files, packages_max_download, packages_max_unpacked and packages_timeout", "must be above 0")
	case c.PackagesIndex != "" && !strings.Contains(c.PackagesIndex, "://"):
		return bad("packages_index", "must be an address, such as an https:// one")
	case c.Out == "":
		return bad("out", "must name a folder")
	case !filepath.IsAbs(c.Data) || !filepath.IsAbs(c.Runtime):
		return bad("data and runtime", "must be absolute paths; set COVE_HOME, or HOME")
	}
	return c.validate(bad)
}
