package api

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"cove/internal/core/problem"
	"cove/internal/machine/guestlink"
	"cove/internal/machine/process"
	"cove/internal/server/auth"
)

// SessionPort is a TCP port at which a program of a session listens.
type SessionPort struct {
	Port    int    `json:"port" example:"8000"`
	Address string `json:"address" example:"0.0.0.0" doc:"That it listens at, in the sandbox"`
}

func portOf(p process.Port) SessionPort { return SessionPort{Port: p.Number, Address: p.Address} }

type connectPort struct {
	SessionPath
	Port int `path:"port" minimum:"1" maximum:"65535" example:"8000"`
}

func (s *server) addPorts() {
	const tag = "ports"
	add(s, operation{id: "port.list", method: http.MethodGet, path: "/sessions/{session}/ports", tag: tag, action: auth.SessionsRead, summary: "List the ports of a session",
		about: "At which programs of the session listen.", errors: []problem.Code{problem.SessionNotFound},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/ports`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (List[SessionPort], error) {
			all, err := s.o.Hub.Ports(ctx, who, in.Session)
			return List[SessionPort]{Items: each(all, portOf)}, err
		})
	addRaw(s, operation{id: "port.connect", method: http.MethodGet, path: "/sessions/{session}/ports/{port}/connect", tag: tag, action: auth.SessionsExecute, summary: "Connect to a port of a session",
		about:  "A WebSocket whose binary messages are the bytes of a TCP connection to that port; how they are cut has no meaning. An empty message is the end of what its sender has to say.",
		errors: []problem.Code{problem.SessionNotFound, problem.PortRefused, problem.UpgradeNeeded, problem.SessionTaken},
		example: `# with cove, for any client of TCP on your machine: cove session port $SESSION 8000
# what listens there:
curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/ports`}, s.connectPort)
}

// maxPiece bounds a message of a connection, in bytes.
const maxPiece = 1 << 20

func (s *server) connectPort(w http.ResponseWriter, r *http.Request, who auth.Principal, in *connectPort) error {
	accepted := false
	err := s.o.Hub.UsePort(r.Context(), who, in.Session, in.Port, func(ctx context.Context, stream guestlink.Stream) error {
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			return problem.New(problem.UpgradeNeeded, "this address is a WebSocket").WithHint("connect with a client of WebSockets")
		}
		// Whose page calls was looked at when the request came in, as for every other request.
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
		if accepted = true; err != nil {
			return nil // Accept answered
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(maxPiece)
		auth.LeavePlace(r.Context()) // the hub bounds connections
		carryPort(ctx, conn, stream)
		return nil
	})
	if accepted {
		return nil
	}
	return err
}

// pieces writes each piece as a message.
type pieces struct {
	ctx  context.Context
	conn *websocket.Conn
}

func (p pieces) Write(b []byte) (int, error) {
	return len(b), p.conn.Write(p.ctx, websocket.MessageBinary, b)
}

// carryPort moves bytes between a WebSocket and a connection until both sides have said all, or one has gone.
func carryPort(ctx context.Context, conn *websocket.Conn, stream guestlink.Stream) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out sync.WaitGroup
	out.Go(func() {
		if err := guestlink.Copy(pieces{ctx, conn}, stream); err != nil {
			cancel()
			return
		}
		_ = conn.Write(ctx, websocket.MessageBinary, nil)
	})
	for {
		kind, piece, err := conn.Read(ctx)
		if err != nil || kind != websocket.MessageBinary {
			cancel()
			_ = stream.Close()
			break
		}
		if len(piece) == 0 {
			_ = stream.CloseWrite()
			continue
		}
		if _, err := stream.Write(piece); err != nil {
			break
		}
	}
	out.Wait()
	_ = conn.Close(websocket.StatusNormalClosure, "")
}
