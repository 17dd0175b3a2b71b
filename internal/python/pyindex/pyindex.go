// Package pyindex knows where Python packages come from on this machine: what the user has told uv and pip about indexes,
// certificates and proxies.
package pyindex

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Environment returns the environment for uv: the caller's own, without what would
// point uv at another project or loosen the lock, plus the caller's pip settings in
// uv's words, since uv reads neither pip's variables nor its files. What the caller
// said to uv itself always wins. base is the prefix of the Python in use. flags are
// for what uv takes only on its command line.
func Environment(environ []string, base string) (env []string, flags []string) {
	set := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		// uv takes an empty variable for a wrong one.
		if !misleading(name) && (value != "" || !strings.HasPrefix(name, "UV_")) {
			set[name] = value
		}
	}
	flags = translatePip(set, readPip(set, base))
	set["UV_NO_PROGRESS"] = "1"
	set["UV_PYTHON_DOWNLOADS"] = "never"
	set["NO_COLOR"] = "1"
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env, flags
}

// misleading tells whether a variable would change what a locked installation means.
func misleading(name string) bool {
	switch name {
	case "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT",
		"UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_BREAK_SYSTEM_PACKAGES", "UV_TARGET", "UV_PREFIX", "UV_CONSTRAINT", "UV_OVERRIDE",
		"UV_EXCLUDE", "UV_EXCLUDE_NEWER", "UV_BUILD_CONSTRAINT", "UV_PRERELEASE", "UV_RESOLUTION", "UV_WORKING_DIRECTORY", "UV_WORKING_DIR",
		"UV_NO_BINARY", "UV_NO_BINARY_PACKAGE", "UV_NO_BUILD_PACKAGE", "UV_VENV_SEED", "UV_VENV_CLEAR", "UV_TORCH_BACKEND", "UV_ENV_FILE",
		"UV_NO_VERIFY_HASHES", "UV_NO_PROGRESS", "UV_QUIET", "UV_VERBOSE", "UV_PREVIEW", "RUST_LOG", "FORCE_COLOR":
		return true
	}
	return false
}

// translatePip adds to env what pip says and the caller did not already say to uv,
// and returns the command-line flags for the rest.
func translatePip(env, pip map[string]string) (flags []string) {
	give := func(value string, names ...string) {
		for _, name := range names {
			if env[name] != "" {
				return
			}
		}
		if value != "" {
			env[names[0]] = value
		}
	}
	if !uvNamesIndex(env) {
		extra := words(pip["extra-index-url"])
		give(pip["index-url"], "UV_DEFAULT_INDEX", "UV_INDEX_URL")
		give(strings.Join(extra, " "), "UV_INDEX", "UV_EXTRA_INDEX_URL")
		if len(extra) > 0 {
			// As pip does: any index may hold the locked version, and the hash says whether it is the right one.
			give("unsafe-best-match", "UV_INDEX_STRATEGY")
		}
		var links []string
		for _, link := range words(pip["find-links"]) {
			if _, err := os.Stat(link); err == nil || strings.Contains(link, "://") {
				links = append(links, link)
			}
		}
		give(strings.Join(links, ","), "UV_FIND_LINKS")
		if yes(pip["no-index"]) {
			flags = append(flags, "--no-index")
		}
	}
	give(strings.Join(words(pip["trusted-host"]), " "), "UV_INSECURE_HOST")
	give(firstOf(pip["cert"], env["REQUESTS_CA_BUNDLE"], env["CURL_CA_BUNDLE"]), "SSL_CERT_FILE")
	give(pip["client-cert"], "SSL_CLIENT_CERT")
	give(pip["proxy"], "ALL_PROXY", "HTTPS_PROXY", "https_proxy", "all_proxy")
	timeout := 120
	if n, err := strconv.Atoi(pip["timeout"]); err == nil && n > timeout {
		timeout = n
	}
	give(strconv.Itoa(timeout), "UV_HTTP_TIMEOUT", "UV_REQUEST_TIMEOUT")
	return flags
}

// uvNamesIndex tells whether a configuration file of uv's own says where packages come from.
func uvNamesIndex(env map[string]string) bool {
	config := firstOf(env["XDG_CONFIG_HOME"], filepath.Join(env["HOME"], ".config"))
	for _, path := range []string{env["UV_CONFIG_FILE"], filepath.Join(config, "uv", "uv.toml"), "/etc/uv/uv.toml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimLeft(line, " \t[")
			if strings.HasPrefix(line, "index") || strings.HasPrefix(line, "extra-index") || strings.HasPrefix(line, "find-links") {
				return true
			}
		}
	}
	return false
}

// readPip returns pip's settings by their long option names, as `pip install` would see
// them: its configuration files in rising precedence, then the PIP_ variables.
func readPip(env map[string]string, base string) map[string]string {
	home := env["HOME"]
	var paths []string
	if env["PIP_CONFIG_FILE"] != os.DevNull {
		for _, dir := range filepath.SplitList(firstOf(env["XDG_CONFIG_DIRS"], "/etc/xdg")) {
			paths = append(paths, filepath.Join(dir, "pip", "pip.conf"))
		}
		paths = append(paths, "/etc/pip.conf", filepath.Join(home, ".pip", "pip.conf"),
			filepath.Join(firstOf(env["XDG_CONFIG_HOME"], filepath.Join(home, ".config")), "pip", "pip.conf"),
			filepath.Join(base, "pip.conf"), env["PIP_CONFIG_FILE"])
	}
	settings := map[string]string{}
	for _, section := range []string{"global", "install"} {
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			for name, value := range iniSection(string(text), section) {
				settings[name] = value
			}
		}
	}
	for name, value := range env {
		if option, ok := strings.CutPrefix(name, "PIP_"); ok && value != "" {
			settings[strings.ReplaceAll(strings.ToLower(option), "_", "-")] = value
		}
	}
	if t := settings["default-timeout"]; t != "" {
		settings["timeout"] = t
	}
	return settings
}

// iniSection returns one section of an INI file as Python's configparser reads it: a
// value goes on over the lines below it that are indented.
func iniSection(text, section string) map[string]string {
	values := map[string]string{}
	inside, name := false, ""
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		line := scanner.Text()
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			inside, name = trimmed == "["+section+"]", ""
		case !inside:
		case line[0] == ' ' || line[0] == '\t':
			if name != "" {
				values[name] = strings.TrimSpace(values[name] + " " + trimmed)
			}
		default:
			at := strings.IndexAny(trimmed, "=:")
			if at < 0 {
				continue
			}
			name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(trimmed[:at])), "_", "-")
			values[name] = strings.TrimSpace(trimmed[at+1:])
		}
	}
	return values
}

func words(s string) []string { return strings.Fields(s) }

func yes(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on", "y", "t":
		return true
	}
	return false
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// Offline returns an environment of Environment's without what the caller said to uv and pip, but for where uv keeps its cache: for uv that is told on its command
// line to use files that are there and nothing else.
func Offline(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") &&
			!slices.Contains([]string{"UV_CACHE_DIR", "UV_LINK_MODE", "UV_NO_PROGRESS", "UV_PYTHON_DOWNLOADS"}, name)
	})
}
