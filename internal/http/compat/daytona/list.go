package daytona

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

const (
	longestList = 100
	// mostListed bounds the sessions that are looked at for one listing.
	mostListed = 10_000
)

// wanted is what a listing is to have.
type wanted struct {
	id, name  string // how they begin
	labels    map[string]string
	states    []string
	snapshots []string
	regions   []string
	least     map[string]int64 // of cpu, memory, disk and gpu
	most      map[string]int64
	public    *bool
	none      bool // nothing is like that here
	after     map[string]time.Time
	before    map[string]time.Time
	sort      string
	ascending bool
	limit     int
	cursor    string // the last id of the page before
	page      int
}

// sizes are the parameters that bound a number, and the field that they bound.
var sizes = map[string]string{"Cpu": "cpu", "MemoryGiB": "memory", "DiskGiB": "disk", "Gpu": "gpu"}

// times are the parameters that bound a time, and the field that they bound.
var times = map[string]string{"createdAt": "createdAt", "lastEvent": "lastActivityAt", "autoDestroyAt": "autoDestroyAt"}

// fields are by what sandboxes can be sorted.
var fields = map[string]string{"": "createdAt", "name": "name", "cpu": "cpu", "memoryGib": "memory", "diskGib": "disk", "lastActivityAt": "lastActivityAt", "createdAt": "createdAt", "updatedAt": "updatedAt", "state": "state", "snapshot": "snapshot", "region": "target"}

func wantedOf(q url.Values) (w wanted, err error) {
	list := func(name string) []string { return words(strings.Join(q[name], ",")) }
	w = wanted{
		id: q.Get("id"), name: q.Get("name"), states: list("states"), snapshots: list("snapshots"), regions: list("regionIds"), least: map[string]int64{}, most: map[string]int64{},
		after: map[string]time.Time{}, before: map[string]time.Time{}, limit: longestList, page: 1, cursor: q.Get("cursor"), ascending: strings.EqualFold(q.Get("order"), "asc"),
	}
	if text := q.Get("labels"); text != "" && json.Unmarshal([]byte(text), &w.labels) != nil {
		return w, invalid("labels is a JSON object of texts")
	}
	if w.sort = fields[q.Get("sort")]; w.sort == "" {
		return w, invalid("sort: cove does not sort by " + bounded(q.Get("sort")))
	}
	for name, field := range sizes {
		if err := bound(q, "min"+name, field, w.least); err != nil {
			return w, err
		}
		if err := bound(q, "max"+name, field, w.most); err != nil {
			return w, err
		}
	}
	for name, field := range times {
		if err := boundTime(q, name+"After", field, w.after); err != nil {
			return w, err
		}
		if err := boundTime(q, name+"Before", field, w.before); err != nil {
			return w, err
		}
	}
	for name, into := range map[string]*int{"limit": &w.limit, "page": &w.page} {
		if text := q.Get(name); text != "" {
			if *into, err = strconv.Atoi(text); err != nil || *into < 1 || *into > mostListed {
				return w, invalid(name + " is a number from 1")
			}
		}
	}
	w.limit = min(w.limit, 2*longestList)
	if text := q.Get("isPublic"); text != "" {
		public := text == "true"
		w.public = &public
	}
	w.none = q.Get("isRecoverable") == "true"
	return w, nil
}

func bound(q url.Values, name, field string, into map[string]int64) error {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return invalid(name + " is a number")
	}
	into[field] = int64(n)
	return nil
}

func boundTime(q url.Values, name, field string, into map[string]time.Time) error {
	text := q.Get(name)
	if text == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		return invalid(name + " is a time as in RFC 3339")
	}
	into[field] = t
	return nil
}

// has says whether a sandbox, as it is shown, is to be listed.
func (w wanted) has(one map[string]any) bool {
	text := func(name string) string { t, _ := one[name].(string); return t }
	labels, _ := one["labels"].(map[string]string)
	for name, value := range w.labels {
		if got, ok := labels[name]; !ok || got != value {
			return false
		}
	}
	for field, n := range w.least {
		if have, _ := one[field].(int64); have < n {
			return false
		}
	}
	for field, n := range w.most {
		if have, _ := one[field].(int64); have > n {
			return false
		}
	}
	for field, t := range w.after {
		if at, err := time.Parse(time.RFC3339, text(field)); err != nil || at.Before(t) {
			return false
		}
	}
	for field, t := range w.before {
		if at, err := time.Parse(time.RFC3339, text(field)); err != nil || at.After(t) {
			return false
		}
	}
	in := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, text(name)) }
	public := w.public == nil || one["public"] == *w.public
	return !w.none && public && strings.HasPrefix(text("id"), w.id) && strings.HasPrefix(text("name"), w.name) && in(w.states, "state") && in(w.snapshots, "snapshot") && in(w.regions, "target")
}

// sorted sorts sandboxes as they are shown, the newest first where nothing else is wanted.
func (w wanted) sorted(all []map[string]any) {
	slices.SortStableFunc(all, func(a, b map[string]any) int {
		order := 0
		switch x := a[w.sort].(type) {
		case int64:
			y, _ := b[w.sort].(int64)
			order = cmp.Compare(x, y)
		case string:
			y, _ := b[w.sort].(string)
			order = cmp.Compare(x, y)
		}
		if order == 0 {
			x, _ := a["id"].(string)
			y, _ := b["id"].(string)
			order = cmp.Compare(x, y)
		}
		if !w.ascending {
			return -order
		}
		return order
	})
}

// all are the caller's sandboxes that a listing is to have, in its order.
func (s *Server) all(c *call, w wanted) ([]map[string]any, error) {
	out := []map[string]any{}
	for row, err := range s.each(c.Context(), c.who, kindSandbox) {
		if err != nil {
			return nil, err
		}
		r, ok := recordOf(row, kindSandbox)
		b := sandbox{id: row.ID, who: c.who, record: r, session: row}
		if !ok || s.lifeOf(b).over(time.Now()) {
			continue
		}
		if one := s.shown(c.Request, b); w.has(one) {
			out = append(out, one)
		}
	}
	w.sorted(out)
	return out, nil
}

// list lists sandboxes as the client's version takes them: an array to 0.107, and pages with a cursor since 0.180.
func (s *Server) list(c *call) error {
	w, err := wantedOf(c.URL.Query())
	if err != nil {
		return err
	}
	all, err := s.all(c, w)
	if err != nil {
		return err
	}
	if wantsArray(c.Request) {
		reply(c.w, http.StatusOK, all)
		return nil
	}
	if w.cursor != "" {
		at := slices.IndexFunc(all, func(one map[string]any) bool { return one["id"] == w.cursor })
		if at < 0 {
			return invalid("cursor: the sandbox at which the page before ended is not there any more; list from the beginning")
		}
		all = all[at+1:]
	}
	var next any
	if len(all) > w.limit {
		all = all[:w.limit]
		next = all[len(all)-1]["id"]
	}
	reply(c.w, http.StatusOK, map[string]any{"items": all, "nextCursor": next})
	return nil
}

// listPages lists sandboxes for clients from 0.108 to 0.179.
func (s *Server) listPages(c *call) error {
	w, err := wantedOf(c.URL.Query())
	if err != nil {
		return err
	}
	all, err := s.all(c, w)
	if err == nil {
		reply(c.w, http.StatusOK, paged(all, w))
	}
	return err
}

// paged is one page of what is listed.
func paged(all []map[string]any, w wanted) map[string]any {
	total := len(all)
	from := min((w.page-1)*w.limit, total)
	return map[string]any{"items": all[from:min(from+w.limit, total)], "total": total, "page": w.page, "totalPages": (total + w.limit - 1) / w.limit}
}

// wantsArray says whether a client lists sandboxes as an array: it calls them workspaces, or is one of Daytona's with no version or one to 0.107.
func wantsArray(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, Prefix+"/workspace") {
		return true
	}
	version := r.Header.Get("X-Daytona-SDK-Version")
	if version == "" {
		return r.Header.Get("X-Daytona-Source") != ""
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	return major == "0" && err == nil && n < 108
}

// each yields the caller's sessions of a kind, the newest first.
func (s *Server) each(ctx context.Context, who auth.Principal, kind string) func(func(hub.Session, error) bool) {
	return func(yield func(hub.Session, error) bool) {
		p := hub.Page{Limit: longestList}
		for seen := 0; seen < mostListed; {
			list, err := s.Hub.Sessions(ctx, who, hub.SessionFilter{Meta: map[string]string{kindEntry: kind}}, p)
			if err != nil {
				yield(hub.Session{}, err)
				return
			}
			for _, row := range list.Items {
				seen++
				if !yield(row, nil) {
					return
				}
			}
			if p.After = list.Next; p.After == "" {
				return
			}
		}
	}
}

func (s *Server) show(c *call) error {
	b, err := s.of(c)
	if err == nil {
		reply(c.w, http.StatusOK, s.shown(c.Request, b))
		return nil
	}
	if out := s.gone.take(c.who, c.PathValue("id")); out != nil {
		reply(c.w, http.StatusOK, out)
		return nil
	}
	return err
}

func (s *Server) proxyURL(c *call) error {
	if _, err := s.of(c); err != nil {
		return err
	}
	reply(c.w, http.StatusOK, map[string]string{"url": toolboxURL(c.Request)})
	return nil
}
