package record

import (
	"cove/internal/core/problem"
	"cove/internal/llm/loop"
	"cove/internal/python/kernel"
)

// OrDefault returns the page as stores take it.
func (p Page) OrDefault() (Page, error) {
	if p.Limit == 0 {
		p.Limit = 20
	}
	if p.Limit < 1 || p.Limit > 100 {
		return p, problem.New(problem.PageLimit, "a page has 1 to 100 entries")
	}
	return p, nil
}

// Page says which part of a list is wanted: Limit entries (1 to 100; 0 means 20) after the cursor that the last page gave.
type Page struct {
	After string
	Limit int
	// Oldest lists the oldest first.
	Oldest bool
}

// Listing is one page. Next is the cursor of the next one, "" at the end.
type Listing[T any] struct {
	Items []T
	Next  string
}

// Event is what an execution emits.
type Event = kernel.Event

// TurnEvent is what a turn emits.
type TurnEvent = loop.Event
