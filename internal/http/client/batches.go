package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/server/transcript"
)

// Batch runs a batch, and yields what happens as the server tells it: JSON objects with a type, of which the last is "end". When the connection breaks, what has begun goes on, and what has not is
// not begun.
func (c *Client) Batch(ctx context.Context, n api.NewBatch) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		s, err := c.open(ctx, call{method: http.MethodPost, path: "/batches", body: n})
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.close()
		for {
			e, err := s.next()
			switch {
			case errors.Is(err, io.EOF):
				err = problem.New(problem.StreamEnded, "the connection ended before the batch did").WithHint("what had begun goes on: see `cove history`; the rest was not begun")
			case err != nil:
				err = c.unreachable(ctx, err)
			case e.Name == "failure":
				err = failureOf(e.Data)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(json.RawMessage(e.Data), nil) || e.Name == "end" {
				return
			}
		}
	}
}

// failureOf is the problem of an event that ends a stream.
func failureOf(body []byte) error {
	if p, ok := transcript.ParseFailure(body); ok {
		return p
	}
	return problem.New(problem.ServerUnexpected, "the server ended the stream without saying why")
}
