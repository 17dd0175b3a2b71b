package require

import (
	"slices"
	"strings"
)

// Pip is what the words after `pip install` ask for.
type Pip struct {
	Requirements []Requirement
	Refused      []string // words that are not allowed: URLs, paths, VCS, files of requirements, foreign indexes; as written
}

// Options of pip and of uv that change where packages come from, by whether a value follows.
var refusedOptions = map[string]bool{
	"-i": true, "--index-url": true, "--extra-index-url": true, "--index": true, "--default-index": true, "--no-index": false, "--pypi-url": true,
	"-f": true, "--find-links": true, "-r": true, "--requirement": true, "--requirements": true, "-c": true, "--constraint": true, "--constraints": true,
	"-e": true, "--editable": true, "--group": true, "-b": true, "--build-constraint": true, "--build-constraints": true, "--override": true, "--overrides": true, "--exclude": true, "--excludes": true,
	"--requirements-from-script": true,
}

// Options that have a value and are passed over. What has none needs no list: see flag.
var valuedOptions = []string{
	"-t", "--target", "--prefix", "--root", "-p", "--python", "--platform", "--python-version", "--python-platform", "--implementation", "--abi",
	"--upgrade-strategy", "--progress-bar", "--no-binary", "--only-binary", "--log", "--timeout", "--default-timeout", "--retries", "--resume-retries", "--exists-action", "--cache-dir",
	"--src", "-C", "--config-setting", "--config-settings", "--config-settings-package", "--global-option", "--build-option", "--report", "--root-user-action", "--keyring-provider", "--use-feature",
	"--use-deprecated", "--trusted-host", "--allow-insecure-host", "--proxy", "--cert", "--client-cert", "--resolution", "--prerelease", "--index-strategy", "--link-mode",
	"--exclude-newer", "--exclude-newer-package", "--color", "--directory", "--project", "--config-file", "--no-build-package", "--no-binary-package", "--no-build-isolation-package",
	"--reinstall-package", "--refresh-package", "--upgrade-package", "-P", "--upgrade-group", "--torch-backend", "--extra", "--fork-strategy", "--no-sources-package", "--uploaded-prior-to", "--env-file",
}

var flags = []string{
	"--upgrade", "--quiet", "--verbose", "--user", "--no-deps", "--no-dependencies", "--pre", "--force-reinstall", "--ignore-installed", "--ignore-requires-python", "--no-cache-dir",
	"--no-cache", "--break-system-packages", "--disable-pip-version-check", "--no-input", "--isolated", "--no-color", "--yes", "--no-warn-script-location", "--no-warn-conflicts",
	"--no-python-version-warning", "--require-virtualenv", "--no-build-isolation", "--use-pep517", "--no-use-pep517", "--check-build-dependencies", "--no-clean", "--require-hashes", "--prefer-binary", "--dry-run",
	"--compile", "--no-compile", "--compile-bytecode", "--no-compile-bytecode", "--no-user", "--debug", "--system", "--no-system", "--reinstall", "--refresh", "--offline", "--native-tls", "--system-certs", "--strict", "--no-strict",
	"--no-progress", "--no-config", "--no-build", "--no-sources", "--exact", "--no-verify-hashes", "--verify-hashes", "--managed-python", "--no-managed-python", "--no-python-downloads", "--all-extras",
	"--user-agent", "--no-break-system-packages", "--no-upgrade", "--help", "--version", "--preview", "--no-preview",
}

// shortFlags are the letters of options without a value, which may share one hyphen.
const shortFlags = "UqvnIyhV"

// ParsePip reads the words after `pip install` (uv's spelling included), from which a shell's quotes have been removed. Options without influence on where
// packages come from (-q, -U, --no-cache-dir, --user, ...) are passed over, and so is what a shell does not hand to pip: redirections, and other commands.
func ParsePip(words []string) Pip {
	var p Pip
	names := false
	for i := 0; i < len(words) && i < mostRequirements; i++ {
		word := strings.TrimSpace(words[i])
		switch {
		case word == "":
		case slices.Contains([]string{"&&", "||", "|", ";", "&"}, word):
			return p
		case word == "--":
			names = true
		case strings.HasPrefix(word, "#") && i > 0:
			return p
		case strings.HasPrefix(word, "-") && !names:
			refused, used := option(words[i:])
			if refused {
				p.Refused = append(p.Refused, strings.Join(words[i:i+used], " "))
			}
			i += used - 1
		case comparison(word):
			used := 1
			if slices.Contains(operators, word) {
				used = min(2, len(words)-i)
			}
			p.Refused = append(p.Refused, strings.Join(words[i:i+used], " "))
			i += used - 1
		case redirection(word):
			if strings.HasSuffix(word, ">") || strings.HasSuffix(word, "<") {
				i++
			}
		default:
			r, err := Parse(word)
			if err != nil {
				p.Refused = append(p.Refused, word)
				continue
			}
			p.Requirements = append(p.Requirements, r)
		}
	}
	return p
}

// option looks at words that begin with an option: whether it is refused, and how many of the words it takes.
func option(words []string) (refused bool, used int) {
	word := words[0]
	name, _, attached := strings.Cut(word, "=")
	if !strings.HasPrefix(word, "--") && len(word) > 2 {
		name, attached = word[:2], true
		if strings.Trim(word[1:], shortFlags) == "" {
			return false, 1
		}
	}
	valued, refused := refusedOptions[name]
	if !refused {
		valued = slices.Contains(valuedOptions, name)
	}
	if valued && !attached && len(words) > 1 {
		return refused, 2
	}
	return refused || !valued && !flag(name), 1
}

func flag(name string) bool {
	return slices.Contains(flags, name) || len(name) == 2 && strings.Contains(shortFlags, name[1:])
}

// comparison says whether word is a specifier that was torn off its project's name: numpy >= 2 in three words.
func comparison(word string) bool {
	return slices.ContainsFunc(operators, func(o string) bool { return len(o) > 1 && strings.HasPrefix(word, o) })
}

// redirection says whether word is a shell's >file, 2>&1 or the like.
func redirection(word string) bool {
	rest := strings.TrimLeft(word, "0123456789&")
	return strings.HasPrefix(rest, ">") || strings.HasPrefix(rest, "<")
}
