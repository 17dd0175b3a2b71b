// Package sdnotify tells systemd, or another that speaks its protocol, how far a service is (sd_notify(3)).
package sdnotify

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// What Tell may be told beside a status.
const (
	Ready    = "READY=1"    // it answers requests
	Stopping = "STOPPING=1" // it has begun to end
)

// patience bounds the wait for one who does not read.
const patience = 2 * time.Second

// Socket is where to tell who started this process. Its zero value is nowhere: nobody wants to be told.
type Socket struct{ path string }

// Find returns the socket that the variable NOTIFY_SOCKET names, and takes the variable away: no process that this one starts is to speak for it.
func Find() Socket {
	socket := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET")
	return Socket{socket}
}

// Tell says what a service does: state is one of the constants or "", and status a line for people.
func (s Socket) Tell(state, status string) error {
	if s.path == "" {
		return nil
	}
	address := s.path
	if strings.HasPrefix(address, "@") { // a name of the abstract namespace
		address = "\x00" + address[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell who started this process: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("tell who started this process: %w", err)
	}
	var lines []string
	if state != "" {
		lines = append(lines, state)
	}
	if status != "" {
		lines = append(lines, "STATUS="+strings.ReplaceAll(status, "\n", " "))
	}
	if _, err := c.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("tell who started this process: %w", err)
	}
	return nil
}
