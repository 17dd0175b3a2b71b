package guest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"cove/internal/machine/wire"
)

// The sandbox has a loopback interface and no other. For a session with a network everything that is not for the sandbox itself is routed there, and then given to two sockets
// of the guest: TCP connections to one, whatever their destination, and UDP to the other, which answers queries for names. Each name that may be reached gets
// an address of its own (see namesFrom), so that a connection to it says which name it is for. Programs need not know of any of this.

// network is what of OpNetwork stays from one connection of the host's to the next.
type network struct {
	mu       sync.Mutex
	tcp, udp uint16     // the ports of the two sockets; 0 before there are any
	host     *wire.Conn // of the present OpNetwork, or nil
	ctx      context.Context
	lookUps  chan struct{} // holds a token for each name that is being looked up
	free     chan struct{} // holds a token for each connection
	names    map[string]netip.Addr
	byNumber map[netip.Addr]string
	order    []string // of names, the one that was given first
	given    uint32
}

const (
	// mostNames is how many names have addresses at a time.
	mostNames = 4096
	// answerPatience bounds how long a program may take for a query over TCP.
	answerPatience = 20 * time.Second
)

// namesFrom is the first of the addresses that stand for names: 198.18.0.0/15 is for measurements within one's own network and leads nowhere; see RFC 2544.
var namesFrom = netip.AddrFrom4([4]byte{198, 18, 1, 0})

// serveNetwork hands names and connections on to the host until ch ends.
func (g *guest) serveNetwork(ctx context.Context, conn *wire.Conn, ch *wire.Channel, certificates []byte) error {
	if g.user == 0 { // an engine that isolates nothing: the routes would be the host's own
		return fault{wire.FaultInvalid, "there is no sandbox that could be given a network"}
	}
	if len(certificates) > wire.CertificatesLimit {
		return fault{wire.FaultInvalid, "there are too many certificates"}
	}
	if err := g.network.begin(ctx, conn); err != nil {
		return err
	}
	trust(certificates)
	defer g.network.end(conn)
	if err := wire.WriteMessage(ch, wire.Response{}, nil); err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, ch) // nothing more is said; its end is what is waited for
	return nil
}

func (n *network) begin(ctx context.Context, conn *wire.Conn) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.host != nil && n.ctx.Err() == nil {
		return fault{wire.FaultInvalid, "the network is served already"}
	}
	err := n.make()
	if err == nil {
		err = capture(n.tcp, n.udp)
	}
	if err != nil {
		return fault{wire.FaultInternal, "this sandbox cannot be given a network: " + err.Error()}
	}
	n.host, n.ctx = conn, ctx
	return nil
}

func (n *network) end(of *wire.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.host == of {
		n.host = nil
	}
}

// make opens the two sockets, which stay.
func (n *network) make() error {
	if n.tcp != 0 {
		return nil
	}
	n.names, n.byNumber = map[string]netip.Addr{}, map[netip.Addr]string{}
	n.lookUps, n.free = make(chan struct{}, wire.LookUpLimit), make(chan struct{}, wire.ConnectLimit)
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	queries, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		_ = listener.Close()
		return err
	}
	n.tcp, n.udp = portOf(listener.Addr()), portOf(queries.LocalAddr())
	go n.connections(listener)
	go n.queries(queries)
	return nil
}

func portOf(a net.Addr) uint16 {
	port, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return 0
	}
	return port.Port()
}

// connections takes what programs connect to. Those beyond the limit wait in the listener's queue.
func (n *network) connections(listener *net.TCPListener) {
	for {
		n.free <- struct{}{}
		local, err := listener.AcceptTCP()
		if err != nil {
			<-n.free
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(dialIntervalIdle) // too many files are open
			continue
		}
		go func() {
			defer func() { <-n.free }()
			n.connect(local)
		}()
	}
}

// connect gives the host one connection, until it has ended.
func (n *network) connect(local *net.TCPConn) {
	to, err := destination(local)
	if err != nil {
		abort(local)
		return
	}
	if to.Port() == 53 { // names are asked for over TCP, too
		n.queriesOf(local)
		return
	}
	ch, ctx, err := n.ask(wire.Outbound{Kind: wire.OutboundConnect, Host: n.nameOf(to.Addr()), Port: int(to.Port())})
	if err != nil {
		abort(local)
		return
	}
	wire.Join(ctx, local, ch)
}

// abort ends a connection so that its program gets an error rather than an end of the data.
func abort(local *net.TCPConn) {
	_ = local.SetLinger(0)
	_ = local.Close()
}

// ask sends the host what a program wants, and waits for its word.
func (n *network) ask(what wire.Outbound) (*wire.Channel, context.Context, error) {
	n.mu.Lock()
	host, ctx := n.host, n.ctx
	n.mu.Unlock()
	if host == nil {
		return nil, nil, fault{wire.FaultUnreachable, "nobody serves the network"}
	}
	ch, err := host.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	var r wire.Response
	if err = wire.WriteMessage(ch, what, nil); err == nil {
		_, err = wire.ReadMessage(ch, wire.MessageLimit, &r)
	}
	if err == nil && r.Code != "" {
		err = fault{r.Code, r.Message}
	}
	if err != nil {
		_ = ch.Close()
		return nil, nil, err
	}
	return ch, ctx, nil
}

// nameOf returns the name that an address stands for, or else the address.
func (n *network) nameOf(a netip.Addr) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.byNumber[a]; ok {
		return name
	}
	return a.String()
}

// numberOf returns the address that stands for a name.
func (n *network) numberOf(name string) netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.names[name]; ok {
		return a
	}
	var a netip.Addr
	if len(n.order) == mostNames { // the address of the name that was given one first goes to this one
		oldest := n.order[0]
		a = n.names[oldest]
		delete(n.names, oldest)
		n.order = slices.Delete(n.order, 0, 1)
	} else {
		first := namesFrom.As4()
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(first[:])+n.given)
		a = netip.AddrFrom4(b)
		n.given++
	}
	n.names[name], n.byNumber[a] = a, name
	n.order = append(n.order, name)
	return a
}

// queries answers queries for names.
func (n *network) queries(socket *net.UDPConn) {
	buf := make([]byte, longestQuery)
	for {
		size, from, err := socket.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		query := slices.Clone(buf[:size])
		select {
		case n.lookUps <- struct{}{}:
		default:
			continue // whose query is lost asks again
		}
		go func() {
			defer func() { <-n.lookUps }()
			if answer := n.resolve(query); answer != nil {
				_, _ = socket.WriteToUDPAddrPort(answer, from)
			}
		}()
	}
}

// queriesOf answers the queries of one TCP connection; each has its length before it.
func (n *network) queriesOf(local *net.TCPConn) {
	defer func() { _ = local.Close() }()
	for {
		var size [2]byte
		_ = local.SetDeadline(time.Now().Add(answerPatience))
		if _, err := io.ReadFull(local, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(local, query); err != nil {
			return
		}
		answer := n.resolve(query)
		if answer == nil {
			return
		}
		if _, err := local.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// resolve answers one query, or returns nil for what is none.
func (n *network) resolve(query []byte) []byte {
	q, err := parseQuery(query)
	if err != nil {
		return nil
	}
	name := q.name
	if q.class != classInternet || name == "" {
		return q.answer(rcodeNameError, netip.Addr{})
	}
	ch, _, err := n.ask(wire.Outbound{Kind: wire.OutboundLookUp, Host: name})
	if err != nil {
		return q.answer(rcodeNameError, netip.Addr{})
	}
	_ = ch.Close()
	if q.kind != typeA {
		return q.answer(0, netip.Addr{}) // there is such a name, without records of that type
	}
	return q.answer(0, n.numberOf(name))
}

// trust makes the list of authorities that programs are told of: the machine's, and more. What it cannot write is left out, as where the machine has no list.
func trust(more []byte) {
	if _, err := os.Stat(wire.SystemCertificates); err != nil {
		return
	}
	next := wire.CertificatesPath + ".new"
	err := os.Symlink(wire.SystemCertificates, next)
	if len(more) > 0 && err == nil {
		var system []byte
		if system, err = os.ReadFile(next); err == nil {
			err = errors.Join(os.Remove(next), os.WriteFile(next, slices.Concat(system, []byte("\n"), more), 0o600), os.Chmod(next, 0o644))
		}
	}
	if err == nil {
		err = os.Rename(next, wire.CertificatesPath)
	}
	if err != nil {
		_ = os.Remove(next)
	}
}

// destination returns where the program of a captured connection wanted to go.
func destination(c *net.TCPConn) (netip.AddrPort, error) {
	const (
		solIP       = 0
		originalDst = 80 // SO_ORIGINAL_DST, see linux/netfilter_ipv4.h
	)
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var a syscall.RawSockaddrInet4
	size := uint32(unsafe.Sizeof(a))
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, solIP, originalDst, uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	if errno != 0 {
		return netip.AddrPort{}, fmt.Errorf("find the destination: %w", errno)
	}
	port := (*[2]byte)(unsafe.Pointer(&a.Port))
	to := netip.AddrPortFrom(netip.AddrFrom4(a.Addr), binary.BigEndian.Uint16(port[:]))
	if local, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil && local == to {
		return to, errors.New("it was made to the guest's own port")
	}
	return to, nil
}
