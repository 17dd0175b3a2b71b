package config_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cove/internal/core/config"
)

func TestServing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cove.toml")
	text := "listen = [\":8700\", \"unix:/run/cove.sock\"]\nproject_disk = \"10GiB\"\ntrusted_proxies = \"10.0.0.0/8, ::1\"\nsession_life = \"7d\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(environment("HOME", "/home/u", "COVE_CONFIG", file, "COVE_POOL", "3", "COVE_HISTORY", "off"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Serve.Listen.String() != ":8700, unix:/run/cove.sock" || c.Quota.Project.Disk != 10<<30 || c.Serve.Pool != 3 || c.Store.History || c.Session.Life.String() != "7d" {
		t.Errorf("got %+v", c.Serve)
	}
	if p, err := c.Serve.Proxies(); err != nil || len(p) != 2 || p[0].Bits() != 8 || p[1].Bits() != 128 {
		t.Errorf("the proxies are %v, %v", p, err)
	}
	if c.Folders.Server != "/home/u/.local/share/cove/server" || c.SQLite() != "/home/u/.local/share/cove/cove.db" || c.DatabaseAddress() != c.SQLite() {
		t.Errorf("folder %s, database %s", c.Folders.Server, c.DatabaseAddress())
	}
	c.Store.Database, c.Packages.Index = "postgres://u:secret@db/cove", "https://u:secret@index/simple"
	if c.SQLite() != "" || c.DatabaseAddress() != c.Store.Database {
		t.Errorf("the database is %s", c.DatabaseAddress())
	}
	var shown strings.Builder
	if err := c.Document(&shown); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(shown.String(), "secret@") {
		t.Error("the password of the database is shown")
	}
}

func TestServingMistakes(t *testing.T) {
	t.Parallel()
	good, err := config.Load(environment("HOME", "/home/u"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*config.Config){
		"no address":        func(c *config.Config) { c.Serve.Listen = nil },
		"no port":           func(c *config.Config) { c.Serve.Listen = config.List{"localhost"} },
		"a relative socket": func(c *config.Config) { c.Serve.Listen = config.List{"unix:cove.sock"} },
		"below 0":           func(c *config.Config) { c.Serve.Pool = -1 },
		"tokens":            func(c *config.Config) { c.Quota.Project.Tokens = -5 },
		"no number":         func(c *config.Config) { c.Limits.RequestsPerSecond = math.NaN() },
		"a database":        func(c *config.Config) { c.Store.Database = "mysql://db/cove" },
		"half an address":   func(c *config.Config) { c.Store.Database = "sqlite:/var/cove.db" },
		"metrics":           func(c *config.Config) { c.Serve.MetricsListen = "9100" },
		"certificate":       func(c *config.Config) { c.Serve.TLSCert = "cert.pem" },
		"log format":        func(c *config.Config) { c.Log.Format = "xml" },
		"places of data":    func(c *config.Config) { c.Data.Places = config.List{"nltk"} },
		"vision":            func(c *config.Config) { c.Models.Vision = "maybe" },
		"log level":         func(c *config.Config) { c.Log.Level = "loud" },
		"proxy":             func(c *config.Config) { c.Serve.TrustedProxies = config.List{"proxy.example.com"} },
		"model":             func(c *config.Config) { c.Models.Serve = config.List{"gpt-5"} },
		"server":            func(c *config.Config) { c.Remote.Server = "localhost:8700" },
		"server folder":     func(c *config.Config) { c.Folders.Server = "here" },
		"upload":            func(c *config.Config) { c.Limits.Upload = 0 },
		"drain":             func(c *config.Config) { c.Serve.DrainTimeout = 0 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("%s: a bad value is accepted", name)
		}
	}
}
