package front_test

import (
	"net/http"
	"reflect"
	"sync"
	"testing"

	"cove/internal/http/front"
)

// Where one of these is 0 nothing is limited by it: neither requests in a second, nor those of one key or project among all.
func TestZeroIsNoLimit(t *testing.T) {
	t.Parallel()
	const many = 40
	entered, let := make(chan struct{}, many), make(chan struct{})
	g := newRig(t, front.Options{Limits: limited(func(l *front.Limits) {
		*l = l.AtOnce(many)
		l.KeyRate, l.ProjectRate, l.ProjectInFlight, l.KeyInFlight = 0, 0, 0, 0
	})}, map[string]http.HandlerFunc{"GET /v1/held": func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-let
	}})
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if w := g.ask(t, "GET", "/v1/held", anns); w.Code != 200 || w.Header().Get("RateLimit-Limit") != "" {
				entered <- struct{}{}
				t.Errorf("%d %v: %s", w.Code, w.Header(), w.Body)
			}
		})
	}
	for range many {
		<-entered
	}
	close(let)
	all.Wait()
}

// Every limit says whether it may be 0, and none may be below that.
func TestEveryLimitSaysWhatZeroIs(t *testing.T) {
	t.Parallel()
	none := map[string]bool{"KeyRate": true, "ProjectRate": true, "ProjectInFlight": true, "KeyInFlight": true,
		"Burst": false, "InFlight": false, "Wait": false, "Connections": false, "Body": false, "Upload": false, "Memory": false,
		"Header": false, "Idle": false, "Stall": false, "Speed": false, "Grace": false}
	for n := range reflect.TypeFor[front.Limits]().NumField() {
		name := reflect.TypeFor[front.Limits]().Field(n).Name
		may, told := none[name]
		if !told {
			t.Errorf("what 0 is of the limit %s is not tested", name)
		}
		for value, holds := range map[int64]bool{0: may, -1: false, 1: true} {
			l := front.DefaultLimits()
			if f := reflect.ValueOf(&l).Elem().Field(n); f.CanFloat() {
				f.SetFloat(float64(value))
			} else {
				f.SetInt(value)
			}
			if _, err := front.New(front.Options{Limits: l, Surfaces: surfaces(nil)}); (err == nil) != holds {
				t.Errorf("%s: %d: %v", name, value, err)
			}
		}
	}
}
