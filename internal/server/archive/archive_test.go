package archive_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"cove/internal/core/config"
	"cove/internal/core/problem"
	"cove/internal/server/archive"
)

// TestMain has the clients of this package trust the servers of its tests, which speak TLS: without it, bodies are signed piece by piece, which gofakes3 does not read.
func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(nil)
	file, err := os.CreateTemp("", "cove-archive-*.pem")
	if err == nil {
		err = pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	server.Close()
	if err == nil {
		err = errors.Join(file.Close(), os.Setenv("SSL_CERT_FILE", file.Name()))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.Remove(file.Name())
	os.Exit(code)
}

// storage is an S3 server with a bucket named "bucket". before sees each request, and may keep it from the server.
func storage(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (taken bool)) config.Backup {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	inner := gofakes3.New(backend).Server()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return config.Backup{S3Endpoint: server.URL, S3Region: "us-east-1", S3AccessKey: "who", S3SecretKey: "secret"}
}

func nothing(string) string { return "" }

func at(t *testing.T, where string, c config.Backup) archive.Place {
	t.Helper()
	p, _, err := archive.At(where, c, nothing)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantCode(t *testing.T, err error, code problem.Code) {
	t.Helper()
	if !problem.Has(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

func names(t *testing.T, p archive.Place) (out []string) {
	t.Helper()
	all, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		out = append(out, e.Name)
	}
	return out
}

func TestAPlaceOfArchives(t *testing.T) {
	t.Parallel()
	c := storage(t, nil)
	for what, where := range map[string]string{"folder": filepath.Join(t.TempDir(), "new", "place"), "bucket": "s3://bucket", "prefix": "s3://bucket/a/b"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p, ctx := at(t, where, c), t.Context()
			random := rand.NewChaCha8([32]byte{})
			content := make([]byte, 33<<20) // two parts
			_, _ = random.Read(content)
			begin := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
			first, second := archive.MarkOf("a").Name(begin), archive.MarkOf("b").Name(begin.Add(time.Second))
			for _, name := range []string{second, first, "by-hand.tar.gz"} {
				size, err := p.Write(ctx, name, func(w io.Writer) error { _, err := w.Write(content); return err })
				if err != nil || size != int64(len(content)) {
					t.Fatalf("%d bytes, %v", size, err)
				}
			}
			if got := names(t, p); !slices.Contains(got, "by-hand.tar.gz") || slices.Index(got, second) > slices.Index(got, first) || len(got) != 3 {
				t.Errorf("there are %q", got)
			}
			if newest, err := archive.Newest(ctx, p); err != nil || newest != second {
				t.Errorf("the newest is %q, %v", newest, err)
			}
			r, err := p.Read(ctx, first)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil || !slices.Equal(got, content) {
				t.Errorf("%d bytes were read, %v", len(got), err)
			}
			_, err = p.Write(ctx, first, func(io.Writer) error { return nil })
			wantCode(t, err, problem.FileExists)
			if err := errors.Join(p.Remove(ctx, first), p.Remove(ctx, first)); err != nil {
				t.Error(err)
			}
			_, err = p.Read(ctx, first)
			wantCode(t, err, problem.BackupNotFound)
			if got := names(t, p); len(got) != 2 {
				t.Errorf("there are %q", got)
			}
		})
	}
}

// TestWhatIsNotWholeIsNotThere ends writes after more than a part.
func TestWhatIsNotWholeIsNotThere(t *testing.T) {
	t.Parallel()
	var aborted atomic.Int64
	c := storage(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && r.URL.Query().Has("uploadId") {
			aborted.Add(1)
		}
		return false
	})
	dir := t.TempDir()
	for _, where := range []string{dir, "s3://bucket/x"} {
		p := at(t, where, c)
		half := func(then func() error) func(io.Writer) error {
			return func(w io.Writer) error {
				if _, err := w.Write(make([]byte, 40<<20)); err != nil {
					return err
				}
				return then()
			}
		}
		for _, broken := range []error{errors.New("broken off"), io.EOF, io.ErrUnexpectedEOF} {
			if _, err := p.Write(t.Context(), "one.tar.gz", half(func() error { return broken })); !errors.Is(err, broken) {
				t.Errorf("got %v, want %v", err, broken)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := p.Write(ctx, "one.tar.gz", half(func() error { cancel(); return ctx.Err() }))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if got := names(t, p); len(got) > 0 {
			t.Errorf("there are %q", got)
		}
		_, err = archive.Newest(t.Context(), p)
		wantCode(t, err, problem.BackupNotFound)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the folder has %v", left)
	}
	if n := aborted.Load(); n != 4 {
		t.Errorf("%d of 4 uploads were aborted", n)
	}
}

// TestWhatKilledWritesLeaveIsRemoved has in a bucket and in a folder what a kill leaves, of this maker and of another one.
func TestWhatKilledWritesLeaveIsRemoved(t *testing.T) {
	t.Parallel()
	own, other := archive.MarkOf("own"), archive.MarkOf("other")
	now, c, dir := time.Now(), storage(t, nil), t.TempDir()
	client, err := minio.NewCore(strings.TrimPrefix(c.S3Endpoint, "https://"), &minio.Options{Creds: credentials.NewStaticV4(c.S3AccessKey, c.S3SecretKey, ""), Secure: true, Region: c.S3Region})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{own.Name(now), other.Name(now)} {
		_, err := client.NewMultipartUpload(t.Context(), "bucket", "x/"+name, minio.PutObjectOptions{})
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, ".cove-partial-"+name), []byte("half"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{dir, "s3://bucket/x"} {
		p := at(t, where, c)
		if got := names(t, p); len(got) > 0 {
			t.Errorf("there are %q", got)
		}
		if err := p.Sweep(t.Context(), own.Own); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != ".cove-partial-"+other.Name(now) {
		t.Errorf("the folder has %v", left)
	}
	var left []string
	for u := range client.ListIncompleteUploads(t.Context(), "bucket", "x/", true) {
		left = append(left, u.Key)
	}
	if !slices.Equal(left, []string{"x/" + other.Name(now)}) {
		t.Errorf("the bucket has of %q", left)
	}
}

// TestAStorageThatRefuses: what is wrong is said, without the credentials.
func TestAStorageThatRefuses(t *testing.T) {
	t.Parallel()
	c := storage(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=who/") {
			t.Errorf("the request has the authorization %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>`)
		return true
	})
	p := at(t, "s3://bucket/x", c)
	_, err := p.List(t.Context())
	wantCode(t, err, problem.BackupPlaceUnusable)
	_, err = p.Write(t.Context(), "one.tar.gz", func(io.Writer) error { t.Error("it is written"); return nil })
	wantCode(t, err, problem.BackupPlaceUnusable)
	if text := problem.Of(err).Error(); strings.Contains(text, "secret") || !strings.Contains(text, "Access Denied") {
		t.Errorf("it says %q", text)
	}
}

// TestAWSVariables are taken where the settings have nothing. It cannot be parallel: the client reads the environment of the process.
func TestAWSVariables(t *testing.T) {
	seen := make(chan string, 10)
	c := storage(t, func(_ http.ResponseWriter, r *http.Request) bool { seen <- r.Header.Get("Authorization"); return false })
	t.Setenv("AWS_ACCESS_KEY_ID", "envwho")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "envsecret")
	t.Setenv("AWS_ENDPOINT_URL", c.S3Endpoint)
	t.Setenv("AWS_REGION", "eu-x-1")
	p, _, err := archive.At("s3://bucket", config.Backup{}, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, p); len(got) > 0 {
		t.Errorf("there are %q", got)
	}
	if got := <-seen; !strings.Contains(got, "Credential=envwho/") || !strings.Contains(got, "/eu-x-1/s3/") {
		t.Errorf("the request has the authorization %q", got)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := config.Backup{S3Endpoint: "https://minio.example:9000", S3AccessKey: "a", S3SecretKey: "b"}
	for where, want := range map[string][2]string{
		"s3://b":                {"s3://b", ""},
		"s3://b/":               {"s3://b", ""},
		"s3://b/p/q/":           {"s3://b/p/q", ""},
		"s3://b/p/all.tar.gz":   {"s3://b/p", "all.tar.gz"},
		"s3://b/all.tar.gz":     {"s3://b", "all.tar.gz"},
		"s3://":                 {},
		"s3:///x":               {},
		"s3://user:pass@host/x": {},
		"s3://b/p/../q":         {},
		"":                      {},
	} {
		p, name, err := archive.At(where, c, nothing)
		if want[0] == "" {
			wantCode(t, err, problem.Usage)
		} else if err != nil || p.Path("") != want[0] || name != want[1] {
			t.Errorf("%s is %v and %q, %v", where, p, name, err)
		}
	}
	_, _, err := archive.At("s3://b", config.Backup{S3Endpoint: "https://minio.example/with/path"}, nothing)
	wantCode(t, err, problem.ConfigInvalid)
}
