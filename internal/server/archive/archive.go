// Package archive keeps the archives of backups in a folder or in a bucket of an object storage that speaks S3: it puts them there whole or not at all, lists,
// reads and removes them. What is in one is package app's business.
package archive

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/config"
	"cove/internal/core/problem"
)

const (
	suffix = ".tar.gz"
	scheme = "s3://"
)

// Entry is an archive that is whole.
type Entry struct {
	Name string    `json:"name"`
	Size int64     `json:"size"` // bytes
	Made time.Time `json:"made"`
}

// Place has archives by their names. Its errors are problems: backup_place_unusable, backup_not_found, file_exists.
type Place interface {
	// Write puts what fill writes in place as an archive that is not there yet, whole or not at all, and returns its size in bytes. An error of fill's is returned as it is.
	Write(ctx context.Context, name string, fill func(io.Writer) error) (size int64, err error)
	// Read returns an archive, which the caller closes.
	Read(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the archives, the newest first.
	List(ctx context.Context) ([]Entry, error)
	// Remove removes an archive. None is no error.
	Remove(ctx context.Context, name string) error
	// Sweep removes what killed Writes have left of names that mine says are the caller's.
	Sweep(ctx context.Context, mine func(name string) bool) error
	// Path is an archive's name as commands take it.
	Path(name string) string
}

// Remote says whether a place is a bucket.
func Remote(where string) bool { return strings.HasPrefix(where, scheme) }

// Is says whether where is a place of archives, or an archive in a bucket, rather than a file of this machine: a bucket, or a folder that is there or ends with a slash.
func Is(where string) bool {
	if Remote(where) || strings.HasSuffix(where, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(where)
	return err == nil && info.IsDir()
}

// At returns the place that where is, or the place and the name of an archive there: s3://BUCKET/PREFIX, s3://BUCKET/PREFIX/NAME.tar.gz or a folder. getenv has
// the variables that other programs for S3 take.
func At(where string, c config.Backup, getenv func(string) string) (p Place, name string, err error) {
	rest, remote := strings.CutPrefix(where, scheme)
	if !remote {
		if where == "" {
			return nil, "", problem.New(problem.Usage, "a place of backups is a folder or s3://BUCKET/PREFIX, and none is given")
		}
		return folder{filepath.Clean(where)}, "", nil
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	if strings.HasSuffix(prefix, suffix) {
		prefix, name = path.Split(prefix)
	}
	prefix = strings.Trim(prefix, "/")
	if bucket == "" || strings.ContainsAny(bucket, "@:?#") || strings.ContainsAny(prefix, "?#") || prefix != "" && path.Clean(prefix) != prefix {
		return nil, "", problem.New(problem.Usage, "the address of a bucket is s3://BUCKET or s3://BUCKET/PREFIX, without credentials").
			WithHint("give the endpoint with COVE_BACKUP_S3_ENDPOINT and credentials with COVE_BACKUP_S3_ACCESS_KEY and COVE_BACKUP_S3_SECRET_KEY_FILE, or AWS's variables")
	}
	b, err := newBucket(bucket, prefix, c, getenv)
	if err != nil {
		return nil, "", err
	}
	return b, name, nil
}

// Mark ends the names of one maker's archives, so that makers that share a place know their own. It is eight hexadecimal digits.
type Mark string

// MarkOf returns the mark of a maker by what tells it from others.
func MarkOf(maker string) Mark {
	sum := sha256.Sum256([]byte(maker))
	return Mark(hex.EncodeToString(sum[:4]))
}

// AnyMark returns a mark that nobody else has.
func AnyMark() Mark { return MarkOf(rand.Text()) }

const timeForm = "20060102T150405Z"

// Name returns the name of an archive that is made now. Names sort by their times, to the second.
func (m Mark) Name(now time.Time) string {
	return "cove-" + now.UTC().Format(timeForm) + "-" + string(m) + suffix
}

// Own says whether Name may have returned a name.
func (m Mark) Own(name string) bool {
	return Made(name) && strings.HasSuffix(name, "-"+string(m)+suffix)
}

// Begun is the time in a name that Name returned; the zero time for others.
func Begun(name string) time.Time {
	text, _, _ := strings.Cut(strings.TrimPrefix(name, "cove-"), "-")
	begun, _ := time.Parse(timeForm, text)
	return begun
}

var made = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^cove-\d{8}T\d{6}Z-[0-9a-f]{8}\.tar\.gz$`) })

// Made says whether a mark may have made a name.
func Made(name string) bool { return made().MatchString(name) }

// Newest returns the name of the last archive that a mark has named, or of the newest one where there is none.
func Newest(ctx context.Context, p Place) (string, error) {
	all, err := p.List(ctx)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", absent(p, "")
	}
	for _, e := range all {
		if Made(e.Name) {
			return e.Name, nil
		}
	}
	return all[0].Name, nil
}

// sorted has the newest first. Names tell the time at which a backup began, which a copy keeps.
func sorted(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int {
		if Made(a.Name) && Made(b.Name) {
			return strings.Compare(b.Name, a.Name)
		}
		return b.Made.Compare(a.Made)
	})
	return all
}

func absent(p Place, name string) error {
	return problem.New(problem.BackupNotFound, "there is no backup at "+p.Path(name)).
		WithHint("`cove backup ls` with a folder or s3://BUCKET/PREFIX says which there are")
}

func unusable(p Place, err error) error {
	return problem.New(problem.BackupPlaceUnusable, "the place of backups "+p.Path("")+" cannot be used").WithCause(err).
		WithHint("see that it exists, that the credentials may read, write, list and delete there, and that there is room")
}

func taken(p Place, name string) error {
	return problem.New(problem.FileExists, p.Path(name)+" exists already").WithHint("give another name")
}

// counted counts the bytes that it passes on.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
