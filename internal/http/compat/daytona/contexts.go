package daytona

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Files that an image copies come in archives, one for each that the client was given (add_local_file, add_local_dir), before the image is asked for. They are stored files of the caller's.
const (
	contextLife  = 7 * 24 * time.Hour
	mostContexts = 100 // of an image
)

// contextHash is what clients make of a path and its content. It is their word, and says nothing to others than who uploaded the archive.
var contextHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{32}$`) })

func contextPurpose(hash string) string { return "daytona " + hash }

func checkContexts(all []string) error {
	if len(all) > mostContexts {
		return invalid(fmt.Sprintf("buildInfo.contextHashes: an image copies at most %d files and folders; copy folders", mostContexts))
	}
	for _, hash := range all {
		if !contextHash().MatchString(hash) {
			return invalid(fmt.Sprintf("buildInfo.contextHashes: %q is no hash of files (MD5, in hexadecimal digits)", bounded(hash)))
		}
	}
	return nil
}

// storedContext returns the caller's archive with a hash; ok is false where there is none that lasts for a build.
func (s *Server) storedContext(ctx context.Context, who auth.Principal, hash string) (f hub.File, ok bool, err error) {
	list, err := s.Hub.Files(ctx, who, contextPurpose(hash), hub.Page{Limit: 20})
	for _, f := range list.Items {
		if f.User == who.User && time.Until(f.Expires) > 2*longestBuild {
			return f, true, err
		}
	}
	return hub.File{}, false, err
}

// uploaded returns nil where the archives of an image are there.
func (s *Server) uploaded(ctx context.Context, who auth.Principal, all []string) error {
	for _, hash := range all {
		if _, ok, err := s.storedContext(ctx, who, hash); err != nil || !ok {
			return errors.Join(err, notUploaded(hash, err))
		}
	}
	return nil
}

func notUploaded(hash string, err error) error {
	if err != nil {
		return nil
	}
	return invalid("buildInfo.contextHashes: the files " + hash + " of the image were not uploaded, or are not kept any more; build it again")
}

// openContexts opens the archives of an image as one.
func (s *Server) openContexts(ctx context.Context, who auth.Principal, all []string) (io.ReadCloser, error) {
	if len(all) == 1 {
		return s.openContext(ctx, who, all[0])
	}
	from, to := io.Pipe()
	go func() {
		to.CloseWithError(joinArchives(to, all, func(hash string) (io.ReadCloser, error) { return s.openContext(ctx, who, hash) }))
	}()
	return from, nil
}

func (s *Server) openContext(ctx context.Context, who auth.Principal, hash string) (io.ReadCloser, error) {
	f, ok, err := s.storedContext(ctx, who, hash)
	if err == nil && !ok {
		err = notUploaded(hash, nil)
	}
	if err != nil {
		return nil, err
	}
	_, content, err := s.Hub.OpenFile(ctx, who, f.ID)
	return content, err
}

// joinArchives writes the entries of archives as one archive. Of files that are in several, the first counts. What is in them is looked at by who unpacks them, who stops reading where it is too much.
func joinArchives(w io.Writer, names []string, open func(name string) (io.ReadCloser, error)) error {
	out, seen := tar.NewWriter(w), map[string]bool{}
	for _, name := range names {
		err := func() error {
			in, err := open(name)
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }()
			return appendArchive(out, in, seen)
		}()
		if err != nil {
			return err
		}
	}
	return out.Close()
}

func appendArchive(out *tar.Writer, r io.Reader, seen map[string]bool) error {
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if name := path.Clean(h.Name); h.Typeflag != tar.TypeDir {
			if seen[name] {
				continue
			}
			seen[name] = true
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// pushAccess tells clients where to put archives: into what is a small part of S3 (see objects.go). The session token there is the key with which they ask, which they have anyway.
func (s *Server) pushAccess(c *call) error {
	key := c.Header.Get("X-Api-Key")
	if scheme, text, _ := strings.Cut(c.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(text)
	}
	if key == "" {
		return invalid("files of an image are uploaded with a key; send it as Authorization: Bearer")
	}
	reply(c.w, http.StatusOK, map[string]string{
		"storageUrl": origin(c.Request) + strings.TrimSuffix(objectsPath, "/"), "bucket": bucket, "organizationId": c.who.Project, "region": "us-east-1",
		"accessKey": "key", "secret": "signatures-are-not-looked-at", "sessionToken": key,
	})
	return nil
}
