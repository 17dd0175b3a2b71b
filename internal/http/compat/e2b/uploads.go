package e2b

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// archiveLife is how long an archive is kept for further builds. It is a stored file of the caller's, and counts as one.
const archiveLife = 7 * 24 * time.Hour

// archiveHash is what clients make of a copy and its files; it is their word, and says nothing to others than who uploaded the archive.
var archiveHash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

// archivePurpose marks the stored file of an archive, as far as a purpose has room.
func archivePurpose(hash string) string { return "e2b " + hash[:60] }

// storedArchive returns the caller's archive with a hash; ok is false where there is none that lasts for a build.
func (s *server) storedArchive(ctx context.Context, who auth.Principal, hash string) (f hub.File, ok bool, err error) {
	list, err := s.Hub.Files(ctx, who, archivePurpose(hash), hub.Page{Limit: 20})
	for _, f := range list.Items {
		if f.User == who.User && f.Name == hash+".tar" && (f.Expires.IsZero() || time.Until(f.Expires) > 2*longestBuild) {
			return f, true, err
		}
	}
	return hub.File{}, false, err
}

// archiveLink says whether the archive of a copy is there, and where to put it.
func (s *server) archiveLink(c *call) error {
	hash := c.PathValue("hash")
	if !archiveHash().MatchString(hash) {
		return invalid("the hash of files is SHA-256, in hexadecimal digits")
	}
	m := s.builds.waiting(c.who, c.PathValue("id"))
	if m == nil {
		return noTemplate(c.PathValue("id"))
	}
	_, present, err := s.storedArchive(c.Context(), c.who, hash)
	if err != nil {
		return err
	}
	code, err := s.builds.archiveCode(m, hash)
	if err != nil {
		return err
	}
	scheme := "http"
	if c.TLS != nil || strings.EqualFold(c.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	reply(c.w, http.StatusCreated, map[string]any{"present": present, "url": scheme + "://" + c.Host + "/templates/uploads/" + code})
	return nil
}

// waiting returns the caller's newest build of a template that waits for its steps; nil where there is none.
func (b *builds) waiting(who auth.Principal, template string) *making {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.all) - 1; i >= 0; i-- {
		m := b.all[i]
		m.mu.Lock()
		is := m.status == statusWaiting && m.who.Project == who.Project && m.who.User == who.User && (m.template == template || m.name == template)
		m.mu.Unlock()
		if is {
			return m
		}
	}
	return nil
}

// archiveCode makes the secret part of the address for an archive.
func (b *builds) archiveCode(m *making, hash string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for code, of := range m.archives {
		if of == hash {
			return code, nil
		}
	}
	if len(m.archives) >= mostArchives {
		return "", invalid(fmt.Sprintf("a build copies at most %d archives; copy folders", mostArchives))
	}
	code, _ := auth.RandomCode()
	m.archives[code] = hash
	return code, nil
}

// ofCode returns what an address is for, and whose; nil where it is for nothing.
func (b *builds) ofCode(code string) (m *making, hash string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.all {
		if hash, ok := m.archives[code]; ok && time.Since(m.began) < longestBuild {
			return m, hash
		}
	}
	return nil, ""
}

// takeArchive stores an archive. What is in it is looked at when it is unpacked.
func (s *server) takeArchive(w http.ResponseWriter, r *http.Request) {
	m, hash := (*making)(nil), ""
	err := auth.VisitOf(r.Context()).Look(r.Context(), func(context.Context) error {
		if m, hash = s.builds.ofCode(r.PathValue("code")); m == nil {
			return problem.New(problem.LinkNotFound, "the address of the upload is wrong, or too old")
		}
		return nil
	})
	if err == nil {
		var leave func()
		if leave, err = auth.VisitOf(r.Context()).Enter(r.Context(), m.who); err == nil {
			defer leave()
			who := m.who
			visitor := auth.VisitOf(r.Context()).Visitor()
			who.Request, who.IP, who.Agent = visitor.Request, visitor.IP, visitor.Agent
			_, err = s.Hub.AddFile(r.Context(), who, hub.NewFile{Name: hash + ".tar", Purpose: archivePurpose(hash), Life: archiveLife}, r.Body)
		}
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// openArchive opens the archive of a copy.
func (s *server) openArchive(ctx context.Context, who auth.Principal, hash string) (io.ReadCloser, error) {
	f, ok, err := s.storedArchive(ctx, who, hash)
	if err == nil && !ok {
		err = problem.New(problem.FileNotFound, "the files of the copy were not uploaded, or are not kept any more").WithHint("build again, with force_upload")
	}
	if err != nil {
		return nil, err
	}
	_, content, err := s.Hub.OpenFile(ctx, who, f.ID)
	return content, err
}
