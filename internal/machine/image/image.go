// Package image keeps the file systems of OCI images as folders that sandboxes begin with: fetched from a registry, an archive or a layout, every layer checked and unpacked once.
//
// What is in an image is its maker's, who is nobody's friend: each path is looked up within the image's own root, what it holds is bounded, and its digests are compared.
// Sandboxes see an image read-only. Owners are not kept (all files are cove's, and everybody may read them), nor are set-user-ID bits, capabilities of files, devices and pipes.
//
//	<dir>/<digest>/image.json   what it is; written last
//	<dir>/<digest>/root/        its file system, which never changes
//	<dir>/<digest>/in-use       locked by those that have sandboxes with it
//	<dir>/.lock-*               held by the process that unpacks, by digest
//	<dir>/.tmp-*                an image being unpacked or removed, or what a killed process left of one
package image

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cove/internal/core/problem"
	"cove/internal/machine/sandbox"
)

const (
	version      = 1
	manifestName = "image.json"
	rootName     = "root"
	tmpPrefix    = ".tmp-"
	lockPrefix   = ".lock-"
	digestPrefix = "sha256:"
)

// UseName is the file beside a root that those lock which have sandboxes with it; see Hold.
const UseName = "in-use"

// Image is an image that is unpacked.
type Image struct {
	Version    int       `json:"version"`
	Digest     string    `json:"digest"`     // of its manifest, for this machine's platform: "sha256:..."
	References []string  `json:"references"` // by which it was asked for, the newest last
	Made       time.Time `json:"made"`       // when it was unpacked
	Size       int64     `json:"size_bytes"` // of its files
	Entries    int       `json:"entries"`    // files, folders and links
	LeftOut    int       `json:"left_out"`   // entries that are no file, folder or link
	Env        []string  `json:"env"`        // NAME=VALUE, for what runs in it
	Dir        string    `json:"dir"`        // where its programs begin; "" or absolute
	User       string    `json:"user"`       // as whom they would
	Start      []string  `json:"start"`      // its entry point and command, which sandboxes do not run
	Python     Python    `json:"python"`
	Used       time.Time `json:"-"` // last

	dir string
}

// Python is the interpreter of an image. The zero value is none.
type Python struct {
	Path  string `json:"path,omitempty"` // in the image
	Minor int    `json:"minor,omitempty"`
}

// Root is the folder with the image's file system.
func (i *Image) Root() string { return filepath.Join(i.dir, rootName) }

// family begins the names of what is made for the image.
func (i *Image) family() string { return "image-" + ShortDigest(i.Digest) }

// ShortDigest is what names an image to people: the first digits.
func ShortDigest(digest string) string {
	hex := strings.TrimPrefix(digest, digestPrefix)
	return hex[:min(12, len(hex))]
}

// Variables are Env by name. Names that programs could not have are left out.
func (i *Image) Variables() map[string]string {
	v := map[string]string{}
	for _, line := range i.Env {
		name, value, ok := strings.Cut(line, "=")
		if ok && name != "" && !strings.ContainsRune(line, 0) {
			v[name] = value
		}
	}
	return v
}

// Hold keeps the image, or the layer of system packages, that a sandbox begins from from being removed, until release is called or the process ends.
func Hold(spec sandbox.Spec) (release func(), err error) {
	root := cmp.Or(spec.Root, spec.Layer)
	if root == "" {
		return func() {}, nil
	}
	f, err := os.Open(filepath.Join(filepath.Dir(root), UseName))
	if err == nil {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
	}
	if spec.Root == "" {
		return nil, problem.New(problem.SystemPackagesMissing, "the system packages of the session are not there any more, or are being removed").WithHint("run the command again").WithCause(err)
	}
	return nil, problem.New(problem.ImageMissing, "the image is not there any more, or is being removed").WithHint("fetch it again: cove image pull").WithCause(err)
}

// Open returns the image with that digest. Problems: image_missing.
func (s Store) Open(digest string) (*Image, error) {
	missing := problem.New(problem.ImageMissing, "the image "+ShortDigest(digest)+" is not on this machine").WithHint("fetch it again: cove image pull")
	hex, ok := strings.CutPrefix(digest, digestPrefix)
	if !ok || !isHex(hex) {
		return nil, missing
	}
	i, err := read(filepath.Join(s.Dir, hex))
	if err != nil {
		return nil, missing.WithCause(err)
	}
	return i, nil
}

func isHex(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func read(dir string) (*Image, error) {
	path := filepath.Join(dir, manifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	i := &Image{dir: dir}
	if err := json.Unmarshal(text, i); err != nil {
		return nil, err
	}
	if i.Version != version || i.Digest != digestPrefix+filepath.Base(dir) {
		return nil, fmt.Errorf("%s is of another version of cove", path)
	}
	if info, err := os.Stat(filepath.Join(dir, UseName)); err == nil {
		i.Used = info.ModTime()
	}
	return i, nil
}

// Touch remembers that the image is used, by which those are chosen that are removed first.
func (i *Image) Touch() {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(i.dir, UseName), now, now) // another user's folder may be read-only to us
}

// List returns the images, the one used last first.
func (s Store) List() ([]*Image, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unusable(s.Dir, err)
	}
	var all []*Image
	for _, e := range entries {
		if !isHex(e.Name()) {
			continue
		}
		if i, err := read(filepath.Join(s.Dir, e.Name())); err == nil { // else it is just being removed, or another version's
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b *Image) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// Find returns the images that a person means: by a reference, or by the beginning of a digest.
func (s Store) Find(what string) ([]*Image, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	if r, err := Parse(what); err == nil {
		if i := s.here(r); i != nil {
			return []*Image{i}, nil
		}
	}
	const shortest = 6
	hex := strings.TrimPrefix(what, digestPrefix)
	found := slices.DeleteFunc(all, func(i *Image) bool {
		return len(hex) < shortest || !strings.HasPrefix(strings.TrimPrefix(i.Digest, digestPrefix), hex)
	})
	if len(found) == 0 {
		return nil, problem.New(problem.ImageMissing, fmt.Sprintf("there is no image %.200q on this machine", what)).WithHint("`cove image ls` lists them")
	}
	return found, nil
}

// Remove removes an image that no sandbox has. Sessions that are saved with it cannot go on afterwards. Problems: image_used.
func (s Store) Remove(i *Image) error {
	release, err := TakeUnused(i.dir)
	defer release()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return problem.New(problem.ImageUsed, "a sandbox has the image "+ShortDigest(i.Digest)).WithHint("end the session that it belongs to")
	}
	gone, err := os.MkdirTemp(s.Dir, tmpPrefix)
	if err == nil {
		// In this order a removal that is cut short leaves nothing that looks whole.
		err = os.Rename(i.dir, filepath.Join(gone, "image"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // another process was quicker
	}
	if s.Removed != nil && err == nil {
		s.Removed(i.family())
	}
	return errors.Join(err, discard(gone))
}

// TakeUnused sees to it that no sandbox gets what is in a folder of a store, until release is called. The error is EWOULDBLOCK where one has it.
func TakeUnused(dir string) (release func(), err error) {
	use, err := os.Open(filepath.Join(dir, UseName))
	if err != nil {
		return func() {}, err
	}
	release = func() { _ = use.Close() }
	if err := unix.Flock(int(use.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		release()
		return func() {}, err
	}
	return release, nil
}

// discard removes a folder with folders that may be closed to their owner.
func discard(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

func unusable(dir string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return problem.New(problem.DiskFull, "there is no room left on the disk for the image").WithHint("make room; nothing of it was left behind").WithCause(err)
	}
	return problem.New(problem.DataFolderUnusable, "cove cannot write to "+dir).WithHint("make it writable, or set COVE_HOME to a folder that is").WithCause(err)
}
