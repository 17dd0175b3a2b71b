package guest

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cove/internal/machine/wire"
)

// dialPatience bounds how long a connection inside the sandbox may take: a listener whose queue is full lets it wait.
const dialPatience = 10 * time.Second

// dialPort connects the host to a port of the loopback interface.
func (g *guest) dialPort(ctx context.Context, ch *wire.Channel, req wire.Request) error {
	if req.Port < 1 || req.Port > 65535 {
		return fault{wire.FaultInvalid, "that is no port"}
	}
	if g.dials.Add(1) > wire.DialLimit {
		g.dials.Add(-1)
		return fault{wire.FaultMany, fmt.Sprintf("%d connections to ports of the session are open", wire.DialLimit)}
	}
	defer g.dials.Add(-1)
	local, err := dialLoopback(ctx, req.Port)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fault{wire.FaultRefused, fmt.Sprintf("nothing listens at port %d", req.Port)}
	}
	if err != nil {
		return err
	}
	if err := wire.WriteMessage(ch, wire.Response{}, nil); err != nil {
		_ = local.Close()
		return nil
	}
	wire.Join(ctx, local, ch)
	return nil
}

// dialLoopback tries the old and the new address of the machine itself: some servers listen at one of them alone.
func dialLoopback(ctx context.Context, port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.ECONNREFUSED) {
		if six, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port))); err == nil {
			return six, nil
		}
	}
	return conn, err
}

// listPorts tells at which ports programs listen.
func (g *guest) listPorts(ch *wire.Channel) error {
	ports := []wire.PortInfo{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(path)
		if err != nil {
			continue // a sandbox may have no IPv6
		}
		ports = append(ports, listening(string(table))...)
	}
	slices.SortFunc(ports, func(a, b wire.PortInfo) int { return cmp.Or(a.Port-b.Port, cmp.Compare(a.Address, b.Address)) })
	body, err := json.Marshal(slices.Compact(ports))
	if err != nil {
		return err
	}
	answer(ch, wire.Response{}, body)
	return nil
}

// listening reads the sockets that listen from a table of /proc/net; see proc_net(5).
func listening(table string) (ports []wire.PortInfo) {
	const stateListen = "0A"
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != stateListen {
			continue
		}
		address, port, _ := strings.Cut(fields[1], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		bytes, hexErr := hex.DecodeString(address)
		if err != nil || hexErr != nil || number == 0 {
			continue
		}
		for word := range slices.Chunk(bytes, 4) { // words in the machine's order, which is little-endian where cove runs
			slices.Reverse(word)
		}
		if ip, ok := netip.AddrFromSlice(bytes); ok {
			ports = append(ports, wire.PortInfo{Port: int(number), Address: ip.String()})
		}
	}
	return ports
}
