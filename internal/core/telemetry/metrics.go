package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Histogram names a distribution of seconds.
type Histogram string

// The histograms, with their labels.
const (
	Stages   Histogram = "cove_stage_seconds"          // stage
	Requests Histogram = "cove_http_request_seconds"   // method, route, status ("2xx")
	Store    Histogram = "cove_store_seconds"          // operation
	Model    Histogram = "cove_model_seconds"          // model, phase ("first_token", "answer")
	Delivery Histogram = "cove_event_delivery_seconds" // stream ("execution", "turn"): from an event's coming out of the sandbox until a live follower has taken it
	Wall     Histogram = "cove_execution_seconds"      // outcome
)

// Counter names a number that only grows.
type Counter string

// The counters, with their labels.
const (
	Sessions           Counter = "cove_sessions_total"         // change: created, paused, resumed, forked, lost, deleted
	Executions         Counter = "cove_executions_total"       // outcome
	Turns              Counter = "cove_turns_total"            // outcome
	Retries            Counter = "cove_model_retries_total"    // model
	Claims             Counter = "cove_pool_claims_total"      // result: ready, made
	Tokens             Counter = "cove_model_tokens_total"     // model, direction: in, out
	Installs           Counter = "cove_package_installs_total" // outcome
	Gaps               Counter = "cove_event_gaps_total"       // followers that were told that events are lost
	DroppedOutput      Counter = "cove_output_dropped_bytes_total"
	Refused            Counter = "cove_requests_refused_total" // code of the problem
	Panics             Counter = "cove_panics_total"
	NetworkConnections Counter = "cove_network_connections_total" // result: ok, refused
	// NetworkBytes counts what programs of sessions sent and received; direction: sent, received.
	NetworkBytes Counter = "cove_network_bytes_total"
	ToolCalls    Counter = "cove_tool_calls_total" // server, outcome: ok, failed
	Backups      Counter = "cove_backups_total"    // outcome: ok, failed
)

// The stages of a request, for Stage.
const (
	StageAuthenticate = "authenticate"
	StageAdmit        = "admit"       // until the server has room for the request
	StageQueue        = "queue"       // until the kernel is free
	StageClaim        = "claim"       // a sandbox from the pool
	StageResume       = "resume"      // a paused session into memory
	StageScan         = "scan"        // what the code imports
	StageInstall      = "install"     // packages
	StageKernel       = "kernel"      // the code's own time
	StageFirstEvent   = "first_event" // from the execution's being asked for to its first event
	StageModel        = "model"       // one answer of a model
	StageRoom         = "room"        // until the memory has room for a session
	StagePause        = "pause"
	StageSave         = "save"
	StageFork         = "fork"
)

// maxSeries bounds the combinations of label values of one metric: values that come from callers, as a model's name, must not fill the
// memory. Further ones are counted together as "other".
const maxSeries = 500

// Stage begins a stage of a request and returns what ends it. Stages are not labelled by user or session.
func Stage(ctx context.Context, name string) func() {
	t := From(ctx)
	if t == nil {
		return func() {}
	}
	begin := time.Now()
	return func() { t.Observe(Stages, time.Since(begin), name) }
}

// Observe adds a duration to a histogram, with one value for each of its labels.
func Observe(ctx context.Context, h Histogram, d time.Duration, values ...string) {
	From(ctx).Observe(h, d, values...)
}

// Count adds n, which must not be negative, to a counter, with one value for each of its labels.
func Count(ctx context.Context, c Counter, n float64, values ...string) {
	From(ctx).Count(c, n, values...)
}

// Observe is the function of the same name for callers that have no context.
func (t *Telemetry) Observe(h Histogram, d time.Duration, values ...string) {
	if t == nil {
		return
	}
	if m := t.histograms[h]; m != nil {
		m.of(values).Observe(d.Seconds())
	}
}

// Count is the function of the same name for callers that have no context.
func (t *Telemetry) Count(c Counter, n float64, values ...string) {
	if t == nil || n < 0 {
		return
	}
	if m := t.counters[c]; m != nil {
		m.of(values).Add(n)
	}
}

// Gauge has value asked whenever the metrics are read: it must be quick and safe for concurrent use. labels are pairs of a name and a
// value that never changes. A name may be used several times with other values.
func (t *Telemetry) Gauge(name, help string, value func() float64, labels ...string) {
	if t == nil {
		return
	}
	fixed := prometheus.Labels{}
	for i := 0; i+1 < len(labels); i += 2 {
		fixed[labels[i]] = labels[i+1]
	}
	t.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: fixed}, value))
}

// Costly is a value for Gauge that takes some work to find out: it is found out anew at most every 15 seconds.
func Costly(value func() float64) func() float64 {
	const fresh = 15 * time.Second
	var mu sync.Mutex
	var at time.Time
	var last float64
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) >= fresh {
			last, at = value(), time.Now()
		}
		return last
	}
}

func (t *Telemetry) registerMetrics() {
	// From 250 microseconds, a write to the store, to ten minutes, a long execution.
	buckets := []float64{.00025, .0005, .001, .0025, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 150, 300, 600}
	for name, m := range map[Histogram]struct {
		help   string
		labels []string
	}{
		Stages:   {"Time of each stage of a request.", []string{"stage"}},
		Requests: {"Time of an HTTP request until its answer was written.", []string{"method", "route", "status"}},
		Store:    {"Time of an operation of the database.", []string{"operation"}},
		Model:    {"Time of a model's answers.", []string{"model", "phase"}},
		Delivery: {"Time from an event's coming to the server until a follower that is up to date has taken it.", []string{"stream"}},
		Wall:     {"Wall clock of executions.", []string{"outcome"}},
	} {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: string(name), Help: m.help, Buckets: buckets}, m.labels)
		t.registry.MustRegister(v)
		t.histograms[name] = newSeries(len(m.labels), func(values []string) prometheus.Observer { return v.WithLabelValues(values...) })
	}
	for name, m := range map[Counter]struct {
		help   string
		labels []string
		zero   []string // values that are there from the start, so that the first one is seen as a growth
	}{
		Sessions:           {"Changes of sessions.", []string{"change"}, []string{"created", "paused", "resumed", "forked", "lost", "deleted"}},
		Executions:         {"Executions by how they ended.", []string{"outcome"}, []string{"ok", "error", "timeout", "interrupted", "out_of_memory", "kernel_died", "sandbox_died", "lost"}},
		Turns:              {"Turns by how they ended.", []string{"outcome"}, []string{"completed", "waiting", "failed", "canceled", "lost"}},
		Retries:            {"Calls of models that were repeated.", []string{"model"}, nil},
		Claims:             {"New sessions by whether a sandbox was ready or had to be made.", []string{"result"}, []string{"ready", "made"}},
		Tokens:             {"Tokens of models.", []string{"model", "direction"}, nil},
		Installs:           {"Installations of packages by how they ended.", []string{"outcome"}, []string{"ok", "cached"}},
		Gaps:               {"Followers that were told that events are lost.", nil, []string{""}},
		DroppedOutput:      {"Bytes of output that were not kept.", nil, []string{""}},
		Refused:            {"Requests that were refused, by the code of the problem.", []string{"code"}, nil},
		Panics:             {"Faults in handlers that were caught.", nil, []string{""}},
		NetworkConnections: {"Connections of sessions' programs to other machines that have ended, and destinations that were refused.", []string{"result"}, []string{"ok", "refused"}},
		NetworkBytes:       {"Bytes of connections of sessions' programs.", []string{"direction"}, []string{"sent", "received"}},
		ToolCalls:          {"Calls of tools of tool servers by how they ended.", []string{"server", "outcome"}, nil},
		Backups:            {"Backups that this server was to make by itself, by how that ended.", []string{"outcome"}, []string{"ok", "failed"}},
	} {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: string(name), Help: m.help}, m.labels)
		t.registry.MustRegister(v)
		t.counters[name] = newSeries(len(m.labels), func(values []string) prometheus.Counter { return v.WithLabelValues(values...) })
		for _, value := range m.zero {
			t.counters[name].of([]string{value})
		}
	}
}

// series are a metric's numbers by their label values. Looking one up again costs a lock and no memory.
type series[M any] struct {
	labels int
	make   func(values []string) M
	mu     sync.Mutex
	known  map[[4]string]M
}

func newSeries[M any](labels int, fresh func(values []string) M) *series[M] {
	return &series[M]{labels: labels, make: fresh, known: map[[4]string]M{}}
}

// of returns the number of the values, as many as there are labels, or that of "other" for all of them once there are too many combinations.
func (s *series[M]) of(values []string) M {
	var id [4]string
	copy(id[:s.labels], values)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.known[id]; ok {
		return m
	}
	full := len(s.known) >= maxSeries
	clean := make([]string, s.labels)
	for i := range clean {
		clean[i] = label(id[i])
		if full {
			clean[i] = "other"
		}
	}
	m := s.make(clean)
	if !full {
		s.known[id] = m
	}
	return m
}

// label makes a value fit for a label: valid UTF-8 of a bounded length, without what looks like a secret. A model is called by what a client says.
func label(v string) string {
	v = Clean(v)
	if len(v) > 100 {
		v = v[:100]
	}
	return string([]rune(v))
}
