package live

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"cove/internal/code/redact"
	"cove/internal/core/problem"
	"cove/internal/core/telemetry"
	"cove/internal/machine/egress"
	"cove/internal/server/auth"
	"cove/internal/server/hub/record"
)

// MostConnections is how many of the connections of a session are remembered.
const MostConnections = 200

// networkFor returns the problem of a network that a session of the caller's may not have, or nil.
func (m *Manager) networkFor(ctx context.Context, who auth.Principal, n *record.Network) error {
	if n == nil {
		return nil
	}
	rules, err := egress.ParseRules(n.Allow, n.Deny)
	if err != nil {
		return err
	}
	if len(rules.Allow) > 0 && len(m.o.Network.Rules.Allow) == 0 {
		return problem.New(problem.NetworkOff, "the sessions of this server have no network").WithHint("the operator can allow destinations in network.allow")
	}
	if err := egress.CheckCredentials(n.Credentials, rules); err != nil {
		return err
	}
	within, err := m.meter.ReachOf(ctx, who.Project, who.Key)
	if err != nil {
		return err
	}
	for _, r := range rules.Allow {
		if !m.o.Network.Rules.Covers(r) {
			return problem.New(problem.NetworkOff, "the server does not allow sessions to connect to "+r.String()).WithHint("the operator can allow it in network.allow")
		}
		for _, rules := range within {
			if !rules.Covers(r) {
				return problem.New(problem.NetworkOff, "the project or the key may not have sessions connect to "+r.String()).WithHint("an administrator can allow it in the quota")
			}
		}
	}
	return nil
}

// giveNetwork gives a session in memory the network that its record says. loaded says that it has just come into memory, so that its bytes are counted anew.
func (m *Manager) giveNetwork(ctx context.Context, row record.Session, live Networked, seen *outbound, loaded bool) error {
	if row.Secrets != nil {
		seen.setOwn(row.Secrets.Credentials)
	}
	if row.Network == nil || len(row.Network.Allow) == 0 {
		return live.SetNetwork(ctx, nil)
	}
	rules, err := egress.ParseRules(row.Network.Allow, row.Network.Deny)
	if err != nil {
		return err
	}
	within, err := m.meter.ReachOf(ctx, row.Project, row.Key)
	if err != nil {
		return err
	}
	limits := m.o.Network
	if seen.meter == nil || loaded {
		seen.meter = egress.NewMeter(limits.Bytes, limits.Pace)
	}
	o := egress.Options{
		Operator: limits.Rules, Within: within, Session: &rules, Meter: seen.meter,
		Enter: func() (func(), error) { return m.sockets.enter(row.ID, row.Project) },
		Tell: func(e egress.Event) {
			seen.add(e)
			m.countConnection(row, e)
		},
	}
	if s := row.Secrets; s != nil {
		o.Credentials = s.Credentials
		if o.Authority, err = egress.ParseAuthority(s.Authority); err != nil {
			return err
		}
	}
	return live.SetNetwork(ctx, egress.New(o))
}

// countConnection records a connection in the metrics, the log and, where the operator wants that, the audit log.
func (m *Manager) countConnection(row record.Session, e egress.Event) {
	result := "ok"
	var err error
	if e.Refused != "" {
		result, err = "refused", problem.New(problem.DestinationRefused, e.Refused)
	}
	m.o.Telemetry.Count(telemetry.NetworkConnections, 1, result)
	m.o.Telemetry.Count(telemetry.NetworkBytes, float64(e.Sent), "sent")
	m.o.Telemetry.Count(telemetry.NetworkBytes, float64(e.Received), "received")
	ctx := context.Background()
	m.work.Log.DebugContext(ctx, "connection", "session", row.ID, "host", e.Host, "port", e.Port, "address", e.Address, "refused", e.Refused, "sent", e.Sent, "received", e.Received, "seconds", e.Took.Seconds())
	if m.o.Network.Audit {
		m.work.WriteAudit(ctx, auth.Principal{Project: row.Project, User: row.User, Key: row.Key}, "session.connect", row.ID, describe(e), err)
	}
}

func describe(e egress.Event) string {
	return fmt.Sprintf("host %s, port %d, address %s, %d bytes sent, %d received", e.Host, e.Port, e.Address, e.Sent, e.Received)
}

// outbound remembers the newest connections of a session.
type outbound struct {
	changing sync.Mutex // held while the session is given another network
	meter    *egress.Meter

	mu     sync.Mutex
	newest []egress.Event // the oldest first
	own    *redact.Values // the credentials, which a host may repeat to the session; nil: none
}

// setOwn notes the credentials of the session.
func (o *outbound) setOwn(all []egress.Credential) {
	var values []string
	for _, c := range all {
		values = append(values, c.Value)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.own = redact.NewValues(values...)
}

func (o *outbound) credentials() *redact.Values {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own
}

func (o *outbound) add(e egress.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.newest) == MostConnections {
		o.newest = slices.Delete(o.newest, 0, 1)
	}
	o.newest = append(o.newest, e)
}

func (o *outbound) list() []egress.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Clone(o.newest)
	slices.Reverse(all)
	return all
}

// NetworkConnections returns the connections that programs of a session have made, and what they were refused, since the session was loaded into memory: the newest first, at most
// MostConnections. Needs auth.SessionsRead.
func (m *Manager) NetworkConnections(ctx context.Context, who auth.Principal, session string) ([]egress.Event, error) {
	if err := who.Require(auth.SessionsRead); err != nil {
		return nil, err
	}
	if _, err := m.FindSession(ctx, who, session); err != nil {
		return nil, err
	}
	m.mu.Lock()
	s := m.seats[session]
	m.mu.Unlock()
	if s == nil {
		return nil, nil
	}
	return s.outbound.list(), nil
}

// networkPatience bounds how long a change of a session's network waits for a session that is just being loaded.
const networkPatience = time.Minute

// changeNetwork gives a session in memory the network that its record says, also one that is just being loaded with the network that its record had before.
func (m *Manager) changeNetwork(ctx context.Context, project, id string) error {
	m.mu.Lock()
	there := m.seats[id] != nil
	m.mu.Unlock()
	if !there {
		return nil // it is given its network when it is loaded
	}
	// A caller who has left has still been heard.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), networkPatience)
	defer cancel()
	s, err := m.acquireUntouched(ctx, project, id)
	if err != nil {
		return err
	}
	defer m.releaseSeat(s)
	s.outbound.changing.Lock()
	defer s.outbound.changing.Unlock()
	row, err := m.work.Store.Session(ctx, project, id) // of several changes, the last counts
	if err != nil {
		return err
	}
	return m.giveNetwork(ctx, row, s.Live, &s.outbound, false)
}
