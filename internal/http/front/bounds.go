package front

import (
	"time"

	"cove/internal/core/problem"
)

// Limits bound what requests may take. 0 is no limit for the first four; the others, without which a client could make the server hold any amount and wait
// for any time, have to be above 0. Start from DefaultLimits.
type Limits struct {
	KeyRate         float64 // requests of a key in a second
	ProjectRate     float64 // requests of a project in a second
	ProjectInFlight int     // of InFlight, one project's
	KeyInFlight     int     // of them, one key's

	// Of both rates, what was not used in this many seconds may come at once.
	Burst       float64
	InFlight    int           // requests that are served at the same time, streams too
	Wait        time.Duration // that a request is queued
	Connections int           // open connections

	Body   int64 // bytes of a request
	Upload int64 // bytes of a request that uploads a file, and of what is around it
	// Memory is what all requests may take at the same time with what they sent, but for files, in bytes; one key's take half of it.
	Memory int64

	Header time.Duration // for a request's head to arrive
	Idle   time.Duration // a connection is kept without a request
	Stall  time.Duration // for the next bytes of a body to arrive, or to be taken by the client
	Speed  int64         // bytes in a second that a body must have on average after the first Stall
	Grace  time.Duration // for running requests to end when the server stops
}

// DefaultLimits are those of a server of which nothing else is said.
func DefaultLimits() Limits {
	return Limits{
		KeyRate: 50, ProjectRate: 200, Burst: 4, Wait: 2 * time.Second, Body: 64 << 20, Upload: 513 << 20, Memory: 1 << 30,
		Header: 10 * time.Second, Idle: 2 * time.Minute, Stall: 30 * time.Second, Speed: 1024, Grace: 25 * time.Second,
	}.AtOnce(1024)
}

// AtOnce returns the limits with so many requests at the same time, of which half may be one project's and a quarter one key's.
func (l Limits) AtOnce(requests int) Limits {
	l.InFlight, l.ProjectInFlight, l.KeyInFlight, l.Connections = requests, max(1, requests/2), max(1, requests/4), 4*requests
	return l
}

// check says which limit is missing that must be there, or is below 0.
func (l Limits) check() error {
	for _, limit := range []struct {
		name  string
		holds bool
		rule  string
	}{
		{"KeyRate", l.KeyRate >= 0, "0 or more"}, {"ProjectRate", l.ProjectRate >= 0, "0 or more"},
		{"ProjectInFlight", l.ProjectInFlight >= 0, "0 or more"}, {"KeyInFlight", l.KeyInFlight >= 0, "0 or more"},
		{"Burst", l.Burst > 0, "above 0"}, {"InFlight", l.InFlight > 0, "above 0"}, {"Wait", l.Wait > 0, "above 0"}, {"Connections", l.Connections > 0, "above 0"},
		{"Body", l.Body > 0, "above 0"}, {"Upload", l.Upload > 0, "above 0"}, {"Memory", l.Memory > 0, "above 0"}, {"Header", l.Header > 0, "above 0"},
		{"Idle", l.Idle > 0, "above 0"}, {"Stall", l.Stall > 0, "above 0"}, {"Speed", l.Speed > 0, "above 0"}, {"Grace", l.Grace > 0, "above 0"},
	} {
		if !limit.holds {
			return problem.New(problem.ConfigInvalid, "the front door's limit "+limit.name+" must be "+limit.rule)
		}
	}
	return nil
}
