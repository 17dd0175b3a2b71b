package openai

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Metadata of sessions that this surface made.
const (
	expiresKey = "openai.expires_after" // minutes
	memoryKey  = "openai.memory_limit"
	usersKey   = "openai.user_files" // paths, one a line
)

// grace is how long a container that has expired is kept before the hub deletes it.
const grace = 24 * time.Hour

type containerObject struct {
	ID           string         `json:"id"`
	Object       string         `json:"object"`
	CreatedAt    int64          `json:"created_at"`
	Status       string         `json:"status"`
	ExpiresAfter *expiresAfter  `json:"expires_after"`
	LastActiveAt int64          `json:"last_active_at"`
	MemoryLimit  string         `json:"memory_limit"`
	Network      map[string]any `json:"network_policy"`
	Name         string         `json:"name"`
}

type expiresAfter struct {
	Anchor  string `json:"anchor"`
	Minutes int64  `json:"minutes"`
}

func minutesOf(session hub.Session) int64 {
	n, _ := strconv.ParseInt(session.Metadata[expiresKey], 10, 64)
	return n
}

// expired says whether a container has not been used for as long as its maker said. Its state counts as lost then, as at OpenAI.
func (s *server) expired(session hub.Session) bool {
	n := minutesOf(session)
	return n > 0 && s.Now().After(session.Used.Add(time.Duration(n)*time.Minute))
}

func (s *server) shownContainer(session hub.Session) containerObject {
	o := containerObject{ID: containerID(session.ID), Object: "container", CreatedAt: session.Created.Unix(), Status: "running",
		LastActiveAt: session.Used.Unix(), MemoryLimit: session.Metadata[memoryKey], Name: session.Name,
		Network: map[string]any{"type": "disabled"}}
	if n := minutesOf(session); n > 0 {
		o.ExpiresAfter = &expiresAfter{"last_active_at", n}
	}
	if s.expired(session) {
		o.Status = "expired"
	}
	if n := session.Network; n != nil && len(n.Allow) > 0 {
		o.Network = map[string]any{"type": "allowlist", "allowed_domains": n.Allow}
	}
	if o.MemoryLimit == "" {
		o.MemoryLimit = "1g"
		for _, limit := range []string{"4g", "16g", "64g"} {
			if n, _ := strconv.ParseInt(strings.TrimSuffix(limit, "g"), 10, 64); session.Memory >= n<<30 {
				o.MemoryLimit = limit
			}
		}
	}
	return o
}

func (s *server) createContainer(c *call) error {
	f, err := s.readForm(c)
	if err != nil {
		return err
	}
	f.only("name", "expires_after", "file_ids", "memory_limit", "network_policy", "skills")
	n := hub.NewSession{Name: f.needed("name"), Metadata: map[string]string{}, Files: ownFiles(f, "file_ids"), Memory: s.memory(f)}
	if limit := f.text("memory_limit"); limit != "" {
		n.Metadata[memoryKey] = limit
	}
	n.Network = readNetwork(f)
	if len(f.list("skills")) > 0 {
		f.fail(unsupported("skills", "Unsupported parameter: 'skills'. This server has no skills."))
	}
	if f.has("expires_after") {
		minutes := readExpiry(f)
		n.Metadata[expiresKey] = strconv.FormatInt(minutes, 10)
		n.Life = time.Duration(minutes)*time.Minute + grace
	}
	if f.err != nil {
		return f.err
	}
	for _, id := range n.Files {
		record, err := s.Hub.File(c.Context(), c.who, id)
		if err != nil {
			return named(err, noFile(fileID(id)))
		}
		n.Metadata[usersKey] = strings.TrimPrefix(n.Metadata[usersKey]+"\n"+record.Name, "\n")
	}
	session, err := s.Hub.CreateSession(c.Context(), c.who, n)
	if err != nil {
		return err
	}
	return c.reply(s.shownContainer(session))
}

// readExpiry reads "expires_after". OpenAI keeps containers 20 minutes at most; here they may be kept for a day.
func readExpiry(f *form) int64 {
	inner := f.object("expires_after", f.raw["expires_after"])
	inner.only("anchor", "minutes")
	if anchor := inner.needed("anchor"); anchor != "last_active_at" && inner.err == nil {
		inner.fail(notOneOf("expires_after.anchor", anchor, []string{"last_active_at"}))
	}
	if !inner.has("minutes") {
		inner.fail(missing("expires_after.minutes"))
	}
	minutes := inner.integer("minutes", 1)
	if minutes != nil && *minutes > 24*60 {
		inner.fail(invalid("expires_after.minutes", "integer_above_max_value",
			"Invalid 'expires_after.minutes': integer above maximum value. Expected a value <= 1440, but got "+strconv.FormatInt(*minutes, 10)+" instead."))
	}
	f.take(inner)
	if minutes == nil {
		return 0
	}
	return *minutes
}

func (s *server) listContainers(c *call) error {
	q, err := readPage(c, 20, 100)
	if err != nil {
		return err
	}
	name := c.URL.Query().Get("name")
	entries, more, err := collect(q, func(p hub.Page) (hub.Listing[hub.Session], error) {
		return s.Hub.Sessions(c.Context(), c.who, hub.SessionFilter{Name: name}, p)
	}, func(session hub.Session) (entry, bool) {
		return entry{containerID(session.ID), s.shownContainer(session)}, name == "" || session.Name == name
	})
	if err != nil {
		return err
	}
	return c.reply(newList(entries, more))
}

// container returns a session that may be used, and has it live on for as long as its maker said.
func (s *server) container(c *call, id string) (hub.Session, error) {
	session, err := s.lookup(c, id)
	if err != nil {
		return session, err
	}
	if s.expired(session) {
		return session, invalid("", "container_expired", "Container is expired.")
	}
	return session, s.prolong(c, session)
}

func (s *server) lookup(c *call, id string) (hub.Session, error) {
	own, err := ownContainer(id)
	if err != nil {
		return hub.Session{}, err
	}
	session, err := s.Hub.Session(c.Context(), c.who, own)
	if err == nil && session.State == hub.SessionDeleted {
		return session, noContainer(id)
	}
	return session, named(err, noContainer(id))
}

func (s *server) getContainer(c *call) error {
	session, err := s.lookup(c, c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.reply(s.shownContainer(session))
}

func (s *server) deleteContainer(c *call) error {
	id, err := ownContainer(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.Hub.DeleteSession(c.Context(), c.who, id); err != nil {
		return named(err, noContainer(c.PathValue("id")))
	}
	return c.reply(deleted{c.PathValue("id"), "container.deleted", true})
}

// noteUpload remembers that a path came from the user, for "source". Where the caller may not change the session it is not remembered.
func (s *server) noteUpload(c *call, session hub.Session, path string) {
	if !c.who.May(auth.SessionsWrite) || fromUser(session, path) || len(session.Metadata[usersKey]) > 16<<10 {
		return
	}
	meta := maps.Clone(session.Metadata)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[usersKey] = strings.TrimPrefix(meta[usersKey]+"\n"+path, "\n")
	if _, err := s.Hub.ChangeSession(c.Context(), c.who, session.ID, hub.SessionChange{Metadata: meta}); err != nil {
		s.Log.WarnContext(c.Context(), "the source of a container file was not noted", "session", session.ID, "error", err)
	}
}

func fromUser(session hub.Session, path string) bool {
	for known := range strings.SplitSeq(session.Metadata[usersKey], "\n") {
		if known == path {
			return true
		}
	}
	return false
}
