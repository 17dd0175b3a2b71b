package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"cove/internal/core/problem"
	"cove/internal/http/api"
	"cove/internal/http/client"
	"cove/internal/python/kernel"
)

// TestConnectionsAreUsedAgain after every kind of answer that was read to its end, and no answer is waited for that has no end.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	h := &fakeHub{events: count(3), content: map[string]string{"a": "abc"}}
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(&front{next: api.New(api.Options{Hub: h, Version: "7"})})
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := client.New(server.URL, key)
	t.Cleanup(c.Close)
	run := func(stop bool) {
		_, events, err := c.Run(t.Context(), session, api.NewExecution{Code: "1"})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range events {
			if err != nil {
				t.Error(err)
			}
			if _, done := e.(kernel.Done); done && stop {
				break // as callers do who know that it is the last
			}
		}
	}
	for range 5 {
		run(false)
		run(true)
		if _, err := c.Install(t.Context(), session, []string{"polars"}, nil); err != nil {
			t.Error(err)
		}
		if _, err := c.Install(t.Context(), session, []string{"bad"}, nil); problem.Of(err).Code != "package_unknown" {
			t.Error(err)
		}
		for _, err := range c.Follow(t.Context(), "exe_other", 0) {
			if problem.Of(err).Code != "execution_not_found" {
				t.Error(err)
			}
		}
		if _, err := c.Download(t.Context(), session, "a", io.Discard); err != nil {
			t.Error(err)
		}
		h.answer = problem.New(problem.ModelAuth, "the model's key is not right")
		_, events, err := c.Ask(t.Context(), "", api.NewTurn{Prompt: "?"})
		if err != nil {
			t.Fatal(err)
		}
		for _, last := range events {
			err = last
		}
		if problem.Of(err).Code != "model_auth" {
			t.Error(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("it took %d connections", n)
	}
}

// A server that says nothing after the last event, and does not end, holds nobody up for long.
func TestAServerThatDoesNotEndItsAnswer(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	c, _, _ := serve(t, &fakeHub{}, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		_, _ = io.WriteString(w, "id: 1\nevent: done\ndata: {\"type\":\"done\",\"outcome\":\"ok\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done(): // the client has left
		case <-let:
			t.Error("the client waits for what does not come")
		}
		return true
	})
	patience := time.AfterFunc(30*time.Second, func() { close(let) })
	defer patience.Stop()
	for e, err := range c.Follow(t.Context(), execution, 0) {
		if err != nil || printed(t, e) != "kernel.Done" {
			t.Errorf("%v %v", e, err)
		}
	}
}

// Who gives up while the first event is on its way is not told that the server were no good.
func TestGivingUpBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, _, _ := serve(t, &fakeHub{}, func(w http.ResponseWriter, r *http.Request, _ int) bool {
		_, _ = w.Write(bytes.Repeat([]byte(": still here\n\n"), 2<<20)) // more than a connection holds: the client reads
		cancel()
		<-r.Context().Done()
		return true
	})
	_, _, err := c.Run(ctx, session, api.NewExecution{Code: "1"})
	if p, told := errors.AsType[*problem.Error](err); told || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %+v", err, p)
	}
}
