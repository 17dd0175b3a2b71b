package e2b

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const mostTags = 50 // of a build

func (s *server) listTags(c *call) error {
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
	out := []map[string]any{}
	for _, t := range all {
		for _, one := range t.record.Built.Tags {
			out = append(out, map[string]any{"tag": one.Name, "buildID": t.record.Built.Build, "createdAt": one.At})
		}
	}
	reply(c.w, http.StatusOK, out)
	return nil
}

// parseTags reads tags of a template.
func parseTags(said []string, name string) (tags []string, err error) {
	for _, text := range said {
		word, err := parseTag(text, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(tags, word) {
			tags = append(tags, word)
		}
	}
	if len(tags) > mostTags {
		return nil, invalid("a build has at most 50 tags")
	}
	return tags, nil
}

// assignTags gives tags to the build that a name means, which other builds of the template lose.
func (s *server) assignTags(c *call) error {
	var in struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	t, err := s.templateOf(c.Context(), c.who, in.Target)
	if err != nil {
		return err
	}
	tags, err := parseTags(in.Tags, t.record.Name)
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		return invalid("there are no tags")
	}
	if err := s.retag(c.Context(), c.who, t, tags); err != nil {
		return err
	}
	reply(c.w, http.StatusCreated, map[string]any{"buildID": t.record.Built.Build, "tags": tags})
	return nil
}

// removeTags takes tags from a template's builds. A build without any is deleted.
func (s *server) removeTags(c *call) error {
	var in struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := c.read(&in); err != nil {
		return err
	}
	name, _, err := parseName(in.Name)
	if err != nil {
		return noTemplate(in.Name)
	}
	tags, err := parseTags(in.Tags, name)
	if err != nil {
		return err
	}
	all, err := s.templates(c.Context(), c.who, name)
	if err != nil {
		return err
	}
	found := false
	for _, t := range all {
		if slices.ContainsFunc(tags, t.has) {
			found = true
			if err := s.untag(c.Context(), c.who, t, tags); err != nil {
				return err
			}
		}
	}
	if !found {
		return &fault{http.StatusNotFound, "template '" + name + "' has no tag " + strings.Join(tags, ", ")}
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// retag gives a build tags, and then takes them from all other builds of the template: at every moment a tag means one that is there.
func (s *server) retag(ctx context.Context, who auth.Principal, t template, tags []string) error {
	now := time.Now().UTC()
	err := s.changeTemplate(ctx, who, t, func(b *built) {
		b.Tags = without(b.Tags, tags)
		for _, name := range tags {
			b.Tags = append(b.Tags, tagged{name, now})
		}
	})
	if err != nil {
		return err
	}
	all, err := s.templates(ctx, who, t.record.Built.Template)
	for _, other := range all {
		if other.row.ID != t.row.ID && slices.ContainsFunc(tags, other.has) && err == nil {
			err = s.untag(ctx, who, other, tags)
		}
	}
	return err
}

// untag takes tags from a build, which is deleted where it then has none: nothing could be made from it any more.
func (s *server) untag(ctx context.Context, who auth.Principal, t template, tags []string) error {
	if len(without(t.record.Built.Tags, tags)) > 0 {
		return s.changeTemplate(ctx, who, t, func(b *built) { b.Tags = without(b.Tags, tags) })
	}
	err := s.Hub.DeleteSession(ctx, who, t.row.ID)
	if problem.Is(err, problem.NotFound) {
		return nil
	}
	return err
}

func without(all []tagged, names []string) []tagged {
	return slices.DeleteFunc(slices.Clone(all), func(one tagged) bool { return slices.Contains(names, one.Name) })
}

// changeTemplate changes what is recorded of a build.
func (s *server) changeTemplate(ctx context.Context, who auth.Principal, t template, change func(*built)) error {
	defer s.clocks.Alone(t.row.ID)()
	row, err := s.Hub.Session(ctx, who, t.row.ID)
	if err != nil {
		return err
	}
	r, ok := recordOf(row, kindTemplate)
	if !ok || r.Built == nil {
		return noTemplate(t.record.Name)
	}
	change(r.Built)
	all, err := r.entries(kindTemplate, row.Metadata)
	if err == nil {
		_, err = s.Hub.ChangeSession(ctx, who, t.row.ID, hub.SessionChange{Metadata: all})
	}
	return err
}
