package hub

import (
	"bytes"
	"compress/gzip"
	"context"
	"time"

	"cove/internal/core/ident"
	"cove/internal/core/problem"
	"cove/internal/server/auth"
)

const (
	// LargestShare bounds what one link shows, in bytes.
	LargestShare = 20 << 20
	// mostShares and shareRoom bound the links of a project, and what they take in the database, in bytes.
	mostShares = 1000
	shareRoom  = 1 << 30

	shortestShare = time.Minute
	longestShare  = 10 * 365 * 24 * time.Hour
)

// NewShare says what to share.
type NewShare struct {
	Conversation, Turn string
	Title              string
	Turns              int
	Code               bool
	Life               time.Duration // 0: it does not end
	Document           []byte        // what is shown, which the hub does not read
}

// AddShare makes a link and returns its code, which is not kept. Needs auth.ConversationsWrite. Problems: share_too_large, too_many_shares.
func (h *Hub) AddShare(ctx context.Context, who auth.Principal, n NewShare) (Share, string, error) {
	code, hash := auth.RandomCode()
	s := Share{
		ID: ident.New(ident.Share), Hash: hash, Project: who.Project, User: who.User, Conversation: n.Conversation, Turn: n.Turn, Title: n.Title, Turns: n.Turns,
		Code: n.Code, Created: h.work.Now(),
	}
	if n.Life > 0 {
		s.Expires = s.Created.Add(n.Life)
	}
	err := who.Require(auth.ConversationsWrite)
	switch {
	case err != nil:
	case n.Life != 0 && (n.Life < shortestShare || n.Life > longestShare):
		err = problem.New(problem.LifeInvalid, "a link shows a conversation for a minute to 10 years, or without an end")
	case len(n.Document) > LargestShare:
		err = ErrShareTooLarge()
	default:
		var packed []byte
		if packed, err = gzipped(n.Document); err == nil {
			s.Size = int64(len(packed))
			err = h.work.Store.AddShare(ctx, s, packed, mostShares, shareRoom)
		}
	}
	h.work.WriteAudit(ctx, who, "share.create", s.ID, n.Conversation, err)
	if err != nil {
		return Share{}, "", err
	}
	return s, code, nil
}

// ErrShareTooLarge is the problem of a branch that a link cannot show.
func ErrShareTooLarge() *problem.Error {
	return problem.New(problem.ShareTooLarge, "the turns with their outputs have more than 20 MiB").
		WithHint(`share an earlier turn, or leave out code and output: {"code":false}`)
}

func gzipped(document []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(document); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// Shares lists the links of the project, the newest first. Needs auth.ConversationsRead.
func (h *Hub) Shares(ctx context.Context, who auth.Principal, p Page) (Listing[Share], error) {
	if err := who.Require(auth.ConversationsRead); err != nil {
		return Listing[Share]{}, err
	}
	p, err := p.OrDefault()
	if err != nil {
		return Listing[Share]{}, err
	}
	return h.work.Store.Shares(ctx, who.Project, p)
}

// DeleteShare withdraws a link at once. Needs auth.ConversationsWrite.
func (h *Hub) DeleteShare(ctx context.Context, who auth.Principal, id string) error {
	err := who.Require(auth.ConversationsWrite)
	if err == nil {
		err = h.work.Store.DeleteShare(ctx, who.Project, id)
	}
	h.work.WriteAudit(ctx, who, "share.delete", id, "", err)
	return err
}

// Shared returns what a link shows, as gzip, to anybody who has its code. What never was, was withdrawn or has expired is the same share_not_found.
func (h *Hub) Shared(ctx context.Context, code string) (Share, []byte, error) {
	gone := problem.New(problem.ShareNotFound, "there is nothing behind this link: it is not right, was withdrawn, or has expired").WithHint("ask who sent it for another one")
	hash, ok := auth.CodeHash(code)
	if !ok {
		return Share{}, nil, gone
	}
	s, document, err := h.work.Store.SharedDocument(ctx, hash)
	if problem.Is(err, problem.NotFound) || err == nil && !s.Expires.IsZero() && !h.work.Now().Before(s.Expires) {
		return Share{}, nil, gone
	}
	return s, document, err
}
