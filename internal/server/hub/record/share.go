package record

import (
	"context"
	"time"
)

// Share is a link that shows a branch of a conversation, as it was, to all who have the link's code.
type Share struct {
	ID           string // ident.Share
	Hash         string // of the code; see auth.CodeHash
	Project      string
	User         string // who made it
	Conversation string
	Turn         string // the last one
	Title        string
	Turns        int
	Code         bool  // whether code and its output are shown
	Size         int64 // of the document as it is kept, in bytes
	Created      time.Time
	Expires      time.Time // zero: never
}

// ShareStore keeps shares with their documents. Not found: share_not_found.
type ShareStore interface {
	// AddShare writes a share unless its project has as many already, or its documents would take more than room: too_many_shares. Not found:
	// conversation_not_found.
	AddShare(ctx context.Context, s Share, document []byte, most int, room int64) error
	Shares(ctx context.Context, project string, p Page) (Listing[Share], error)
	DeleteShare(ctx context.Context, project, id string) error
	SharedDocument(ctx context.Context, hash string) (Share, []byte, error)
}
