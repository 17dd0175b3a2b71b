package guest

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// capture has all TCP connections to other machines go to the port tcp of the loopback interface and all UDP to the port udp. It is called
// again after a restore, in which gVisor puts the interfaces' own routes in the place of all.
func capture(tcp, udp uint16) error {
	for _, half := range []byte{0, 128} { // of all addresses; a route to all at once would need a gateway
		// Linux needs the address that what is sent there comes from, or answers find no way back; gVisor knows no such part of a route, and needs none.
		err := routeToLoopback(half, true)
		if err != nil {
			err = routeToLoopback(half, false)
		}
		if err != nil {
			return err
		}
	}
	return redirect(tcp, udp)
}

// routeToLoopback makes a route to the half of all IPv4 addresses that begins with first; see rtnetlink(7). With source, what takes it comes from 127.0.0.1.
func routeToLoopback(first byte, source bool) error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	s, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = syscall.Close(s) }()
	le := binary.LittleEndian // the machine's order where cove runs
	m := le.AppendUint32(nil, syscall.SizeofNlMsghdr+syscall.SizeofRtMsg+2*8)
	m = le.AppendUint16(m, syscall.RTM_NEWROUTE)
	m = le.AppendUint16(m, syscall.NLM_F_REQUEST|syscall.NLM_F_CREATE|syscall.NLM_F_ACK)
	m = le.AppendUint32(m, 1)                                                                                                                   // the number of the request
	m = le.AppendUint32(m, 0)                                                                                                                   // from whom
	m = append(m, syscall.AF_INET, 1, 0, 0, syscall.RT_TABLE_MAIN, syscall.RTPROT_BOOT, syscall.RT_SCOPE_LINK, syscall.RTN_UNICAST, 0, 0, 0, 0) // of one bit
	m = le.AppendUint16(m, 8)
	m = le.AppendUint16(m, syscall.RTA_OIF)
	m = le.AppendUint32(m, uint32(lo.Index))
	m = le.AppendUint16(m, 8)
	m = le.AppendUint16(m, syscall.RTA_DST)
	m = append(m, first, 0, 0, 0)
	if source {
		m = le.AppendUint16(m, 8)
		m = le.AppendUint16(m, syscall.RTA_PREFSRC)
		m = append(m, 127, 0, 0, 1)
		le.PutUint32(m, uint32(len(m)))
	}
	if err := syscall.Sendto(s, m, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(s, answer, 0)
	if err != nil {
		return os.NewSyscallError("recvfrom", err)
	}
	const code = syscall.SizeofNlMsghdr // an NLMSG_ERROR has the error there, 0 for none
	if n < code+4 || le.Uint16(answer[4:]) != syscall.NLMSG_ERROR {
		return fmt.Errorf("netlink answered with %d bytes", n)
	}
	if errno := -int32(le.Uint32(answer[code:])); errno != 0 && syscall.Errno(errno) != syscall.EEXIST {
		return fmt.Errorf("make a route: %w", syscall.Errno(errno))
	}
	return nil
}

// The sizes and places of struct ipt_entry, ipt_replace and their targets; see linux/netfilter_ipv4/ip_tables.h and linux/netfilter/x_tables.h.
const (
	entrySize   = 112
	replaceSize = 96

	soSetReplace = 64
	soGetInfo    = 64 // of getsockopt(2)

	atCounters = 84 // in struct ipt_replace, the number of counters

	hookPrerouting  = 0
	hookInput       = 1
	hookOutput      = 3
	hookPostrouting = 4
	hooks           = 5
)

// redirect replaces the table of address translation by one with two rules: what goes out by TCP and by UDP, and not to 127.0.0.0/8, goes to these ports instead.
func redirect(tcp, udp uint16) error {
	// Raw sockets are how the tables are reached. The guest alone may have one.
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.IPPROTO_RAW)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer func() { _ = syscall.Close(s) }()
	var rules []byte
	var begin, policy [hooks]uint32
	count := uint32(0)
	add := func(rule []byte) (at uint32) {
		at = uint32(len(rules))
		rules = append(rules, rule...)
		count++
		return at
	}
	for _, hook := range []int{hookPrerouting, hookInput, hookOutput, hookPostrouting} {
		begin[hook] = uint32(len(rules))
		if hook == hookOutput {
			add(rule(toPort(tcp), syscall.IPPROTO_TCP))
			add(rule(toPort(udp), syscall.IPPROTO_UDP))
		}
		policy[hook] = add(rule(accept(), 0))
	}
	add(rule(endOfTable(), 0))
	le := binary.LittleEndian
	table := make([]byte, 32, replaceSize+len(rules))
	copy(table, "nat")
	table = le.AppendUint32(table, 1<<hookPrerouting|1<<hookInput|1<<hookOutput|1<<hookPostrouting)
	table = le.AppendUint32(table, count)
	table = le.AppendUint32(table, uint32(len(rules)))
	for _, places := range [][hooks]uint32{begin, policy} {
		for _, at := range places {
			table = le.AppendUint32(table, at)
		}
	}
	table = le.AppendUint32(table, count)
	table = le.AppendUint64(table, 0) // where counters are wanted
	table = append(table, rules...)
	// Linux takes a table only with the number of the rules that it replaces, whose counters it would give back.
	le.PutUint32(table[atCounters:], rulesOf(s, count))
	_, _, errno := syscall.Syscall6(syscall.SYS_SETSOCKOPT, uintptr(s), syscall.IPPROTO_IP, soSetReplace, uintptr(unsafe.Pointer(&table[0])), uintptr(len(table)), 0)
	if errno != 0 {
		return fmt.Errorf("set the rules: %w", errno)
	}
	return nil
}

// rulesOf returns how many entries the present table of address translation has, by the socket s; or otherwise where that cannot be asked.
func rulesOf(s int, otherwise uint32) uint32 {
	var info [84]byte // struct ipt_getinfo
	copy(info[:], "nat")
	size := uint32(len(info))
	const atEntries = 76
	if _, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(s), syscall.IPPROTO_IP, soGetInfo, uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return otherwise
	}
	return binary.LittleEndian.Uint32(info[atEntries:])
}

// rule is an entry of a table. With a protocol it is for what is not for 127.0.0.0/8, without for everything.
func rule(target []byte, protocol uint16) []byte {
	const (
		atDestination, atMask   = 4, 12
		atProtocol              = 80
		atInverse, notToAddress = 83, 0x10
		atTarget, atNext        = 88, 90
	)
	e := make([]byte, entrySize, entrySize+len(target))
	if protocol != 0 {
		e[atDestination], e[atMask], e[atInverse] = 127, 255, notToAddress
	}
	le := binary.LittleEndian
	le.PutUint16(e[atProtocol:], protocol)
	le.PutUint16(e[atTarget:], entrySize)
	le.PutUint16(e[atNext:], uint16(entrySize+len(target)))
	return append(e, target...)
}

// target is what becomes of what a rule is for: its size, its name, and what that name needs.
func target(name string, size int) []byte {
	t := make([]byte, size)
	binary.LittleEndian.PutUint16(t, uint16(size))
	copy(t[2:], name)
	return t
}

func accept() []byte {
	t := target("", 40)
	verdict := int32(-1 - 1) // NF_ACCEPT is 1; a verdict is written as the number before its negative
	binary.LittleEndian.PutUint32(t[32:], uint32(verdict))
	return t
}

func toPort(port uint16) []byte {
	const specified = 2 // NF_NAT_RANGE_PROTO_SPECIFIED
	t := target("REDIRECT", 56)
	binary.LittleEndian.PutUint32(t[32:], 1) // one range
	binary.LittleEndian.PutUint32(t[36:], specified)
	binary.BigEndian.PutUint16(t[48:], port)
	binary.BigEndian.PutUint16(t[50:], port)
	return t
}

func endOfTable() []byte {
	t := target("ERROR", 64)
	copy(t[32:], "ERROR")
	return t
}
