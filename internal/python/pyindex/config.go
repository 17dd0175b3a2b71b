package pyindex

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// config is what we read of uv's own configuration files. uv reads the rest itself, and says when it does not like it.
type config struct {
	Index []struct {
		Name   string `toml:"name"`
		URL    string `toml:"url"`
		Format string `toml:"format"`
	} `toml:"index"`
	InsecureHost []string `toml:"allow-insecure-host"`
	HTTPProxy    string   `toml:"http-proxy"`
	HTTPSProxy   string   `toml:"https-proxy"`
	NoProxy      []string `toml:"no-proxy"`
}

// readConfig merges the files that uv reads, a user's before the system's.
func readConfig(env map[string]string) config {
	var merged config
	for _, path := range configFiles(env) {
		var c config
		if _, err := toml.DecodeFile(path, &c); err != nil {
			continue
		}
		merged.Index = append(merged.Index, c.Index...)
		merged.InsecureHost = append(merged.InsecureHost, c.InsecureHost...)
		merged.HTTPProxy = firstOf(merged.HTTPProxy, c.HTTPProxy)
		merged.HTTPSProxy = firstOf(merged.HTTPSProxy, c.HTTPSProxy)
		if len(merged.NoProxy) == 0 {
			merged.NoProxy = c.NoProxy
		}
	}
	return merged
}

// configFiles returns the paths of uv's configuration files, in falling precedence.
func configFiles(env map[string]string) []string {
	if path := env["UV_CONFIG_FILE"]; path != "" {
		return []string{path}
	}
	if yes(env["UV_NO_CONFIG"]) {
		return nil
	}
	paths := []string{filepath.Join(firstOf(env["XDG_CONFIG_HOME"], filepath.Join(env["HOME"], ".config")), "uv", "uv.toml")}
	for _, dir := range filepath.SplitList(firstOf(env["XDG_CONFIG_DIRS"], "/etc/xdg")) {
		path := filepath.Join(dir, "uv", "uv.toml")
		if _, err := os.Stat(path); err == nil {
			return append(paths, path)
		}
	}
	return append(paths, "/etc/uv/uv.toml")
}

// flat tells whether the configuration calls an index one page of files.
func (c config) flat(place string) bool {
	for _, index := range c.Index {
		if index.URL == place {
			return strings.EqualFold(index.Format, "flat")
		}
	}
	return false
}
