package e2b

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// standingTemplates are those that need no build, which are the same.
var standingTemplates = []string{baseTemplate, codeTemplate, ""}

// built is what is recorded of a template: one build of it, whose session sandboxes are forked from. A build that has no tag any more is deleted.
type built struct {
	Template string    `json:"template"` // the same for all builds of a name
	Build    string    `json:"build"`    // a UUID
	Tags     []tagged  `json:"tags"`
	State    string    `json:"state"`           // of package builder: what the session is
	Start    bool      `json:"start,omitempty"` // a start command runs in it
	At       time.Time `json:"at"`
}

// tagged is a name of one of a template's builds.
type tagged struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

const defaultTag = "default"

var (
	templateName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,127}$`) })
	tagName      = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`) })
)

// parseName reads "NAME" or "NAME:TAG", or the same with a template's id.
func parseName(said string) (name, tag string, err error) {
	name, tag, tagged := strings.Cut(strings.ToLower(strings.TrimSpace(said)), ":")
	switch {
	case strings.Contains(name, "/"):
		return "", "", invalid(fmt.Sprintf("template name '%.100s': cove's templates have no namespaces; leave out what is before the slash", said))
	case !templateName().MatchString(name):
		return "", "", invalid(fmt.Sprintf("template name '%.100s': a name has letters, digits, - and _, 128 at most", said))
	case tagged && !tagName().MatchString(tag):
		return "", "", invalid(fmt.Sprintf("template name '%.100s': a tag has letters, digits, ., - and _, 128 at most", said))
	}
	return name, tag, nil
}

// parseTag reads a tag, which clients may write with the name before it.
func parseTag(said, name string) (string, error) {
	word := strings.ToLower(strings.TrimSpace(said))
	if before, behind, ok := strings.Cut(word, ":"); ok {
		if before != name {
			return "", invalid(fmt.Sprintf("tag '%.100s' is of another template", said))
		}
		word = behind
	}
	if !tagName().MatchString(word) {
		return "", invalid(fmt.Sprintf("tag '%.100s': a tag has letters, digits, ., - and _, 128 at most", said))
	}
	return word, nil
}

// templateID is the id of a project's template by its name.
func templateID(project, name string) string {
	sum := sha256.Sum256([]byte("e2b template\n" + project + "\n" + name))
	return "t" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:12]))[:19]
}

// mayName returns what is wrong with the name of a template that is to be built.
func mayName(name string) error {
	if slices.Contains(standingTemplates, name) {
		return invalid("template name '" + name + "': cove has this one already, as it is")
	}
	if ident.Valid(ident.Session, sessionOf(name)) {
		return invalid("template name '" + name + "' has the form of a snapshot's id; choose another")
	}
	return nil
}

// template is a build of a template.
type template struct {
	row    hub.Session
	record record
}

func (t template) has(tag string) bool {
	return slices.ContainsFunc(t.record.Built.Tags, func(one tagged) bool { return one.Name == tag })
}

// templates returns the caller's templates, the newest builds first, of one name or id, or of all with "".
func (s *server) templates(ctx context.Context, who auth.Principal, name string) ([]template, error) {
	var all []template
	for row, err := range s.each(ctx, who, kindTemplate, false) {
		if err != nil {
			return nil, err
		}
		r, ok := recordOf(row, kindTemplate)
		if ok && r.Built != nil && (name == "" || r.Name == name || r.Built.Template == name) {
			all = append(all, template{row, r})
		}
	}
	slices.SortStableFunc(all, func(a, b template) int { return b.record.Built.At.Compare(a.record.Built.At) })
	return all, nil
}

func noTemplate(said string) error {
	return &fault{http.StatusNotFound, fmt.Sprintf("template '%.100s' not found; cove has %s and %s, snapshots, and what was built", said, baseTemplate, codeTemplate)}
}

// templateOf returns the build that a name means: the one with its tag, or without a tag the default one, or where none has that the newest.
func (s *server) templateOf(ctx context.Context, who auth.Principal, said string) (template, error) {
	name, tag, err := parseName(said)
	if err != nil {
		return template{}, noTemplate(said)
	}
	all, err := s.templates(ctx, who, name)
	if err != nil {
		return template{}, err
	}
	for _, t := range all {
		if t.has(cmp.Or(tag, defaultTag)) {
			return t, nil
		}
	}
	if tag == "" && len(all) > 0 {
		return all[0], nil
	}
	return template{}, noTemplate(said)
}

// fromTemplate makes a session that goes on from a template, with what runs in it.
func (s *server) fromTemplate(ctx context.Context, who auth.Principal, r *record, n hub.NewSession) (hub.Session, error) {
	t, err := s.templateOf(ctx, who, r.Template)
	if err != nil {
		return hub.Session{}, err
	}
	r.Template, r.Name, r.User, r.Dir = t.record.Built.Template, t.record.Name, t.record.User, t.record.Dir
	env := maps.Clone(nonNil(t.record.Env))
	maps.Copy(env, r.Env)
	r.Env = env
	if n.Metadata, err = r.entries(kindSandbox, nil); err != nil {
		return hub.Session{}, err
	}
	made, err := s.Hub.ForkSession(ctx, who, t.row.ID, n)
	if err == nil {
		made, err = s.whole(ctx, who, made)
	}
	return made, err
}

// whole loads what was forked from a template, and removes it where that could not be restored: it would be a sandbox without what was built.
func (s *server) whole(ctx context.Context, who auth.Principal, made hub.Session) (hub.Session, error) {
	row, err := s.Hub.ResumeSession(ctx, who, made.ID)
	if err == nil && row.Rollback != nil {
		err = problem.New(problem.SnapshotUnfit, "the template cannot be restored any more, because the host's programs have changed since it was built").WithHint("build it again")
	}
	if err != nil {
		s.discard(ctx, who, made.ID)
	}
	return row, err
}

// templatePart answers for /templates/aliases/NAME and /templates/ID/tags, which one pattern has to stand for.
func (s *server) templatePart(c *call) error {
	switch {
	case c.PathValue("id") == "aliases":
		return s.alias(c, c.PathValue("part"))
	case c.PathValue("part") == "tags":
		return s.listTags(c)
	}
	return notServed(c.Request)
}

// alias says whether there is a template of a name.
func (s *server) alias(c *call, said string) error {
	id := said
	if said != baseTemplate && said != codeTemplate {
		name, tag, err := parseName(said)
		if err != nil {
			return noTemplate(said)
		}
		all, err := s.templates(c.Context(), c.who, name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(t template) bool { return tag == "" || t.has(tag) })
		if i < 0 {
			return noTemplate(said)
		}
		id = all[i].record.Built.Template
	}
	reply(c.w, http.StatusOK, map[string]any{"templateID": id, "public": false})
	return nil
}

// shownTemplate is a template in a listing, of which the newest build is told.
func (s *server) shownTemplate(t template, builds int) map[string]any {
	r := t.record
	return map[string]any{
		"templateID": r.Built.Template, "buildID": r.Built.Build, "cpuCount": max(1, int(t.row.CPUs)), "memoryMB": t.row.Memory >> 20, "diskSizeMB": s.Disk >> 20, "public": false,
		"aliases": []string{r.Name}, "names": []string{r.Name}, "createdAt": r.Started, "updatedAt": r.Built.At, "createdBy": nil, "lastSpawnedAt": nil, "spawnCount": 0, "buildCount": builds,
		"envdVersion": version, "buildStatus": statusReady,
	}
}

func (s *server) listTemplates(c *call) error {
	all, err := s.templates(c.Context(), c.who, "")
	if err != nil {
		return err
	}
	count, newest := map[string]int{}, []template{}
	for _, t := range all {
		if count[t.record.Built.Template]++; count[t.record.Built.Template] == 1 {
			newest = append(newest, t)
		}
	}
	out := []map[string]any{}
	for _, t := range newest {
		out = append(out, s.shownTemplate(t, count[t.record.Built.Template]))
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

func (s *server) showTemplate(c *call) error {
	name, _, err := parseName(c.PathValue("id"))
	if err != nil {
		return noTemplate(c.PathValue("id"))
	}
	all, err := s.templates(c.Context(), c.who, name)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return noTemplate(name)
	}
	builds := []map[string]any{}
	for _, t := range all {
		at := t.record.Built.At
		builds = append(builds, map[string]any{
			"buildID": t.record.Built.Build, "status": statusReady, "createdAt": t.record.Started, "updatedAt": at, "finishedAt": at, "cpuCount": max(1, int(t.row.CPUs)), "memoryMB": t.row.Memory >> 20,
			"diskSizeMB": s.Disk >> 20, "envdVersion": version,
		})
	}
	out := s.shownTemplate(all[0], len(all))
	out["builds"] = builds
	reply(c.w, http.StatusOK, out)
	return nil
}

// deleteTemplate deletes a snapshot, or a template with all of its builds: those that run are stopped. What was made from it stays.
func (s *server) deleteTemplate(c *call) error {
	said := c.PathValue("id")
	if id, ok := snapshotSession(said); ok {
		row, err := s.Hub.Session(c.Context(), c.who, id)
		if _, ok := recordOf(row, kindSnapshot); problem.Is(err, problem.NotFound) || err == nil && !ok {
			return &fault{http.StatusNotFound, "snapshot '" + said + "' not found"}
		}
		if err == nil {
			err = s.Hub.DeleteSession(c.Context(), c.who, id)
		}
		if err == nil {
			c.w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
	name, _, err := parseName(said)
	if err != nil {
		return noTemplate(said)
	}
	all, err := s.templates(c.Context(), c.who, name)
	if err != nil {
		return err
	}
	stopped := s.builds.stop(c.who, name)
	if len(all) == 0 && !stopped {
		return noTemplate(said)
	}
	for _, t := range all {
		if err := s.Hub.DeleteSession(c.Context(), c.who, t.row.ID); err != nil && !problem.Is(err, problem.NotFound) {
			return err
		}
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
