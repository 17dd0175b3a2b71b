package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"cove/internal/commands/terminal"
	"cove/internal/core/lang"
	"cove/internal/core/problem"
	"cove/internal/sessions/session"
)

// input is one file of the user's that goes into the workspace.
type input struct {
	host string // where it is read
	name string // where it goes, relative to the workspace, slash-separated
	info fs.FileInfo
}

// collect finds the files that -f names, before anything is started: folders with what is in them, under their own
// name. A link is followed when it is named itself; links inside a folder are left out and reported in skipped.
func collect(paths []string, limit int64) (inputs []input, skipped leftOut, err error) {
	taken := map[string]string{}
	var total int64
	for _, given := range paths {
		host, base, err := namedInput(given)
		if err != nil {
			return nil, skipped, err
		}
		found, left, err := collectAs(host, base, false)
		if err != nil {
			return nil, skipped, err
		}
		if other, twice := taken[base]; twice {
			return nil, skipped, problem.New(problem.InputDuplicate,
				fmt.Sprintf("%s and %s would both get the name %s in the workspace", other, given, base)).
				WithHint("give one of them another name there: -f " + given + ":NAME")
		}
		taken[base] = given
		for _, in := range found {
			total += in.info.Size()
		}
		inputs = append(inputs, found...)
		skipped.links, skipped.secrets = append(skipped.links, left.links...), append(skipped.secrets, left.secrets...)
	}
	if total > limit {
		return nil, skipped, problem.New(problem.InputsTooBig,
			fmt.Sprintf("the files are %s together; the workspace holds %s", humanSize(total), humanSize(limit))).
			WithHint("pass the files that the code needs, or a part of them")
	}
	return inputs, skipped, nil
}

func baseName(given string) (string, error) {
	abs, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", given, err)
	}
	base := filepath.Base(abs)
	if base == "/" {
		return "", problem.New(problem.InputRefused, "the root folder cannot be put into the workspace")
	}
	return base, nil
}

// namedInput is what -f names: where it is read, and its name in the workspace, which may stand after a colon.
func namedInput(given string) (host, name string, err error) {
	if _, err := os.Lstat(given); err != nil {
		if at := strings.LastIndexByte(given, ':'); at > 0 && at < len(given)-1 {
			if _, err := os.Lstat(given[:at]); err == nil {
				name = path.Clean(filepath.ToSlash(given[at+1:]))
				if safe, err := safePath(name); err != nil || safe != name {
					return "", "", problem.New(problem.InputRefused, oneLine(given[at+1:])+" is no name in the workspace").WithHint("give a relative path without .., as in -f a.csv:data/b.csv")
				}
				return given[:at], name, nil
			}
		}
	}
	name, err = baseName(given)
	return given, name, err
}

// leftOut is what was not taken from folders.
type leftOut struct{ links, secrets []string }

// collectOne finds one file, or everything in a folder.
func collectOne(given string) (found []input, links []string, err error) {
	base, err := baseName(given)
	if err != nil {
		return nil, nil, err
	}
	found, left, err := collectAs(given, base, true)
	return found, left.links, err
}

// collectAs finds what goes into the workspace under a name. Of folders, what is usually a secret is left out unless all is wanted.
func collectAs(given, base string, all bool) (found []input, left leftOut, err error) {
	info, err := os.Stat(given)
	if err != nil {
		return nil, left, unreadable(given, err)
	}
	if !info.IsDir() {
		in := input{host: given, name: base, info: info}
		return []input{in}, left, in.check()
	}
	top, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, left, unreadable(given, err)
	}
	err = filepath.WalkDir(top, func(host string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(host, err)
		}
		if !all && host != top && private(host, entry) {
			left.secrets = append(left.secrets, host)
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			left.links = append(left.links, host)
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return unreadable(host, err)
		}
		rel, err := filepath.Rel(top, host)
		if err != nil {
			return unreadable(host, err)
		}
		in := input{host: host, name: path.Join(base, filepath.ToSlash(rel)), info: info}
		found = append(found, in)
		return in.check()
	})
	return found, left, err
}

// private says that a file or folder is usually nobody else's business: secrets, keys, and the histories of repositories, which have old ones.
func private(host string, entry fs.DirEntry) bool {
	name := strings.ToLower(entry.Name())
	if entry.IsDir() {
		return slices.Contains([]string{".git", ".hg", ".svn", ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store", ".terraform"}, name)
	}
	ending := path.Ext(name)
	switch {
	case name == ".env" || strings.HasPrefix(name, ".env."):
		return ending != ".example" && ending != ".sample" && ending != ".template" && ending != ".dist"
	case strings.HasPrefix(name, "id_") && slices.Contains([]string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"}, name):
		return true
	case slices.Contains([]string{".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials", ".git", ".htpasswd", ".dockercfg", ".vault-token", "terraform.tfstate", "secrets.toml"}, name):
		return true
	case slices.Contains([]string{".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"}, ending):
		return true
	case ending == ".pem" || ending == ".key":
		return hasPrivateKey(host)
	}
	return false
}

// hasPrivateKey looks for the head of a private key at a file's beginning.
func hasPrivateKey(host string) bool {
	f, err := os.OpenFile(host, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return true
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 64<<10))
	return bytes.Contains(head, []byte("PRIVATE KEY-----"))
}

// check refuses what is not a readable ordinary file. Opening without blocking keeps a FIFO from hanging cove.
func (in input) check() error {
	if !in.info.Mode().IsRegular() {
		return problem.New(problem.InputRefused, oneLine(in.host)+" is not an ordinary file or folder").
			WithHint("cove takes files and folders; save the output of a pipe or a device to a file first")
	}
	if !utf8.ValidString(in.name) {
		return problem.New(problem.InputRefused, fmt.Sprintf("the name %q is not valid UTF-8", in.name)).WithHint("rename the file, or give it another name in the workspace: -f PATH:NAME")
	}
	f, err := os.OpenFile(in.host, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unreadable(in.host, err)
	}
	return f.Close()
}

func unreadable(name string, err error) error {
	what := "cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		what = "is not readable by you"
	}
	p := problem.New(problem.InputUnreadable, oneLine(name)+" "+what)
	if what == "cannot be read" {
		p = p.WithCause(err)
	}
	return p
}

// transfer shows how far files are that go into a workspace.
type transfer struct {
	verb        string
	live        *terminal.Live
	total, done int64
}

func newTransfer(verb string, inputs []input, live *terminal.Live) *transfer {
	t := &transfer{verb: verb, live: live}
	for _, in := range inputs {
		t.total += in.info.Size()
	}
	if len(inputs) > 0 {
		live.Await(lang.Text(verb + " files into the workspace"))
	}
	return t
}

// next begins with a file, and returns what is told of the bytes of it that are through.
func (t *transfer) next(in input) func(int64) {
	before := t.done
	t.done += in.info.Size()
	return func(n int64) {
		t.live.Progress(fmt.Sprintf("%s %s  %s of %s", t.verb, oneLine(in.name), humanSize(min(before+n, t.total)), humanSize(t.total)))
	}
}

// putter is the part of a session that takes files.
type putter interface {
	PutFile(ctx context.Context, path, host string) error
}

// put streams the files into the workspace.
func put(ctx context.Context, to putter, inputs []input, live *terminal.Live) error {
	t := newTransfer("copying", inputs, live)
	for _, in := range inputs {
		host, err := filepath.Abs(in.host)
		if err != nil {
			return unreadable(in.host, err)
		}
		if err := to.PutFile(session.Putting(ctx, t.next(in)), in.name, host); err != nil {
			return fmt.Errorf("put %s into the workspace: %w", in.host, err)
		}
	}
	return nil
}
