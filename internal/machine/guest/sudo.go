package guest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

// In a sandbox with a root, the program sudo runs other programs as root. No program can become root by itself there, as the set-user-ID bit does nothing, so sudo asks the
// guest, over a socket, and lends the program its standard streams. Who may run code in such a sandbox may do anything in it.
const (
	sudoName    = "sudo"
	sudoPath    = "/usr/local/bin/sudo"
	sudoSocket  = "/run/cove-sudo"
	sudoRequest = 1 << 20 // bytes of the longest request
	sudoLimit   = 64      // programs at a time
)

// policyPath is what packages of Debian ask before they start a service. There is no init that could.
const (
	policyPath = "/usr/sbin/policy-rc.d"
	policyText = "#!/bin/sh\nexit 101\n"
)

// sudoWish is what sudo asks for.
type sudoWish struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	User bool     `json:"user"` // as the sandboxed user
}

// sudoEnd is how it ended.
type sudoEnd struct {
	Fault  string `json:"fault,omitempty"`
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
}

// serveSudo puts sudo where it is found and serves it.
func (g *guest) serveSudo() error {
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(sudoPath), 0o755)
	}
	if err == nil {
		_ = os.Remove(sudoPath) // the host's own, which could do nothing here
		err = os.Symlink(self, sudoPath)
	}
	if err != nil {
		return fmt.Errorf("install sudo: %w", err)
	}
	if _, err := os.Lstat(policyPath); errors.Is(err, os.ErrNotExist) {
		_ = os.WriteFile(policyPath, []byte(policyText), 0o755) // without it, packages try in vain
	}
	// The locks of dpkg on the host, which who started an ordinary user's cove may not even read.
	for _, lock := range []string{"/var/lib/dpkg/lock", "/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/triggers/Lock"} {
		if os.Remove(lock) == nil {
			_ = os.WriteFile(lock, nil, 0o640) // dpkg makes it, too
		}
	}
	l, err := net.Listen("unix", sudoSocket)
	if err == nil {
		err = os.Chmod(sudoSocket, 0o666)
	}
	if err != nil {
		return fmt.Errorf("serve sudo: %w", err)
	}
	go func() {
		var serving atomic.Int32
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				defer serving.Add(-1)
				if serving.Add(1) > sudoLimit {
					return
				}
				g.asRoot(conn.(*net.UnixConn))
			}()
		}
	}()
	return nil
}

// asRoot runs what sudo at the other end of conn asks for.
func (g *guest) asRoot(conn *net.UnixConn) {
	wish, files, err := g.wishOf(conn)
	defer func() {
		for _, f := range files {
			_ = syscall.Close(f)
		}
	}()
	var path string
	if err == nil {
		path, err = lookFor(wish.Args[0], wish.Dir, wish.Env)
	}
	if err != nil {
		tellSudo(conn, sudoEnd{Fault: err.Error()})
		return
	}
	attr := &syscall.ProcAttr{Dir: wish.Dir, Env: wish.Env, Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])}, Sys: g.as(program)}
	start := g.procs.start
	if !wish.User {
		attr.Sys.Credential, start = nil, g.procs.startRoot
	}
	pid, exit, err := start(path, wish.Args, attr)
	if err != nil {
		tellSudo(conn, sudoEnd{Fault: fmt.Sprintf("%s cannot be run: %v", wish.Args[0], err)})
		return
	}
	over := make(chan struct{})
	go func() {
		defer func() {
			select {
			case <-over:
			default: // sudo is gone, or has been killed
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
		}()
		one := make([]byte, 1)
		for {
			if _, err := io.ReadFull(conn, one); err != nil {
				return
			}
			select {
			case <-over: // the number may be another's by now
				return
			default:
				_ = syscall.Kill(-pid, syscall.Signal(one[0]))
			}
		}
	}()
	status := <-exit
	close(over)
	end := sudoEnd{Code: status.ExitStatus()}
	if status.Signaled() {
		end.Signal = int(status.Signal())
	}
	tellSudo(conn, end)
}

// wishOf reads a request with the three standard streams of who makes it, which has to be the sandboxed user or root.
func (g *guest) wishOf(conn *net.UnixConn) (wish sudoWish, files []int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return wish, nil, err
	}
	var peer *syscall.Ucred
	if failed := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); failed != nil || err != nil {
		return wish, nil, errors.Join(failed, err)
	}
	if peer.Uid != 0 && peer.Uid != uint32(g.user) {
		return wish, nil, fmt.Errorf("user %d may not do this", peer.Uid)
	}
	head, control := make([]byte, 4), make([]byte, syscall.CmsgSpace(3*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(head, control)
	if err == nil && n < len(head) {
		_, err = io.ReadFull(conn, head[n:])
	}
	if err != nil {
		return wish, nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(control[:oobn])
	for _, m := range messages {
		if got, e := syscall.ParseUnixRights(&m); e == nil {
			files = append(files, got...)
		}
	}
	for _, f := range files {
		syscall.CloseOnExec(f)
	}
	size := binary.BigEndian.Uint32(head)
	if err != nil || len(files) != 3 || size > sudoRequest {
		return wish, files, errors.New("not a request of sudo")
	}
	text := make([]byte, size)
	if _, err = io.ReadFull(conn, text); err == nil {
		err = json.Unmarshal(text, &wish)
	}
	if err == nil && (len(wish.Args) == 0 || !filepath.IsAbs(wish.Dir)) {
		err = errors.New("not a request of sudo")
	}
	return wish, files, err
}

func tellSudo(conn net.Conn, end sudoEnd) {
	text, _ := json.Marshal(end) // numbers and text
	_, _ = conn.Write(append(text, '\n'))
}

const sudoUsage = `usage: sudo [-u USER] [NAME=VALUE ...] COMMAND [ARGUMENT ...]
       sudo -i | -s [COMMAND]
Runs a command as root in this sandbox. It needs no password.`

// sudo is the program: it runs its arguments as root and returns their exit code.
func sudo(args []string) int {
	wish, ok := readSudo(args)
	if !ok {
		fmt.Fprintln(os.Stderr, sudoUsage)
		return 1
	}
	if len(wish.Args) == 0 {
		return 0 // as with -v, which asks for a password where one is needed
	}
	end, err := askGuest(wish)
	if err == nil && end.Fault != "" {
		err = errors.New(end.Fault)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sudo:", err)
		return 1
	}
	if end.Signal != 0 {
		return 128 + end.Signal
	}
	return end.Code
}

// readSudo reads the arguments of sudo. Those about passwords and the environment, which is kept, are taken and mean nothing.
func readSudo(args []string) (wish sudoWish, ok bool) {
	wish.Env = os.Environ()
	shell, login, list := false, false, false
options:
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		a := args[0]
		args = args[1:]
		value := func() string {
			if len(args) == 0 {
				ok = false
				return ""
			}
			v := args[0]
			args = args[1:]
			return v
		}
		switch {
		case a == "--":
			break options
		case a == "-u" || a == "--user":
			wish.User = !isRoot(value())
		case strings.HasPrefix(a, "--user="):
			wish.User = !isRoot(strings.TrimPrefix(a, "--user="))
		case a == "-g" || a == "-p" || a == "-C" || a == "-h" || a == "-r" || a == "-t" || a == "-T" || a == "-U" || a == "-D":
			value()
		case a == "--version" || a == "--help" || a == "-V":
			return wish, false
		case strings.HasPrefix(a, "--"):
		default:
			shell = shell || strings.ContainsRune(a, 's')
			login = login || strings.ContainsRune(a, 'i')
			list = list || strings.ContainsAny(a, "vkKl")
		}
	}
	for len(args) > 0 && strings.ContainsRune(args[0], '=') && !strings.HasPrefix(args[0], "=") {
		wish.Env = append(wish.Env, args[0])
		args = args[1:]
	}
	if shell || login {
		line := []string{"bash"}
		if login {
			line = append(line, "-l")
		}
		if len(args) > 0 {
			line = append(line, "-c", `"$0" "$@"`)
		}
		args = append(line, args...)
	}
	wish.Args = args
	var err error
	if wish.Dir, err = os.Getwd(); err != nil {
		wish.Dir = "/"
	}
	if !wish.User {
		wish.Env = rootEnvironment(wish.Env)
	}
	return wish, len(args) > 0 || list
}

func isRoot(user string) bool { return user == "root" || user == "#0" || user == "0" }

// rootEnvironment is the environment of the sandboxed user, made root's.
func rootEnvironment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "USER=") || strings.HasPrefix(v, "LOGNAME=")
	})
	path := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	if path >= 0 && !strings.Contains(env[path]+":", "/sbin:") {
		env[path] += ":/usr/local/sbin:/usr/sbin:/sbin"
	}
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "DEBIAN_FRONTEND=") }) {
		env = append(env, "DEBIAN_FRONTEND=noninteractive")
	}
	return append(env, "HOME=/root", "USER=root", "LOGNAME=root", "SUDO_USER=user")
}

// askGuest has the guest run a program with this process's standard streams, and passes on the signals that come meanwhile.
func askGuest(wish sudoWish) (end sudoEnd, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: sudoSocket, Net: "unix"})
	if err != nil {
		return end, fmt.Errorf("this sandbox has no root: %w", err)
	}
	defer func() { _ = conn.Close() }()
	text, err := json.Marshal(wish)
	if err != nil || len(text) > sudoRequest {
		return end, errors.New("the command or its environment is too long")
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(text))) //nolint:gosec // bounded above
	if _, _, err = conn.WriteMsgUnix(head, syscall.UnixRights(0, 1, 2), nil); err == nil {
		_, err = conn.Write(text)
	}
	if err != nil {
		return end, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			if number, ok := s.(syscall.Signal); ok {
				_, _ = conn.Write([]byte{byte(number)})
			}
		}
	}()
	err = json.NewDecoder(io.LimitReader(conn, sudoRequest)).Decode(&end)
	return end, err
}
