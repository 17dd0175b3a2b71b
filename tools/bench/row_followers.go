package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Followed is a server at which many clients can follow one execution.
type Followed interface {
	Serving
	// Follow executes a task in l, which is its own, while idle clients follow it that never read, and returns what one that reads has got when the task is over.
	Follow(ctx context.Context, l Live, t Task, idle int) (Output, error)
}

// idleFollowers is how many followers of one key a server allows by default.
const idleFollowers = 250

func followersRow() Row {
	return Row{
		ID: "followers", Title: "10 MB of output for one that reads, beside many that do not", Rounds: 6, Quick: 2, Base: coveServeID,
		Measures: []Measure{
			{ID: "followers-none", Title: "10 MB to one that reads", Unit: "ms", Detail: "as output, over the network, from a background execution that its client follows."},
			{ID: "followers-idle", Title: fmt.Sprintf("the same, with %d that never read", idleFollowers), Unit: "ms", Detail: "their connections are open and full."},
		},
		Able: as[Followed]("its clients cannot follow what another one executes"),
		Round: func(ctx context.Context, s Subject, rec Recorder) (err error) {
			f := s.(Followed)
			l, err := f.Create(ctx)
			if err != nil {
				return err
			}
			defer free(ctx, l, &err)
			for measure, idle := range []int{0, idleFollowers} {
				begun := time.Now()
				out, err := f.Follow(ctx, l, flood(), idle)
				if err == nil {
					err = flood().Check(out)
				}
				if err != nil {
					return err
				}
				rec.took(measure, time.Since(begun))
			}
			return nil
		},
	}
}

// Follow implements Followed.
func (s *coveServer) Follow(ctx context.Context, l Live, t Task, idle int) (out Output, err error) {
	body, err := json.Marshal(map[string]string{"code": t.Cell()})
	if err != nil {
		return out, err
	}
	var execution struct{ ID string }
	if err := s.api.call(ctx, http.MethodPost, l.(*servedSession).path+"/executions?background=true", string(body), http.StatusAccepted, &execution); err != nil {
		return out, err
	}
	path := "/api/v1/executions/" + execution.ID + "/events"
	for range idle {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", s.api.host)
		if err != nil {
			return out, err
		}
		defer c.Close() //nolint:errcheck // nothing was read of it
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n", path, s.api.host, s.api.header.Get("Authorization")); err != nil {
			return out, err
		}
	}
	answer, err := s.api.send(ctx, http.MethodGet, path, "", "text/event-stream")
	if err != nil {
		return out, err
	}
	defer answer.Body.Close() //nolint:errcheck // what was wanted has been read
	err = readEvents(answer, func(e servedEvent) error {
		if e.Type == "stream" {
			out.Bytes += int64(len(e.Text))
		}
		return nil
	})
	return out, err
}
