package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cove/internal/server/auth"
)

const coveServeID = "cove-serve"

// coveServer is `cove serve`: the program itself in a process of its own, reached over loopback as its users reach it. Its database and folders are the run's.
type coveServer struct {
	shop    *workshop
	data    string
	command string
	outside *outside // a model and a tool server, for tasks

	tried  bool
	failed error

	process *server
	api     remote
	metrics remote
	kept    int    // sandboxes that it keeps ready
	source  string // an address that sessions may connect to
}

func (s *coveServer) About() About {
	return About{ID: coveServeID, Title: "cove serve",
		Note: "the server as a program of its own, with keys, quotas, audit and every event in SQLite; isolated by gVisor; its limit of requests per second is off"}
}

// Start starts the server for the first of its subjects, and waits until it says where it is; the others share it, or the reason why there is none.
func (s *coveServer) Start(ctx context.Context) error {
	if !s.tried {
		s.tried = true
		s.failed = s.start(ctx)
	}
	return s.failed
}

func (s *coveServer) start(ctx context.Context) error {
	if err := s.outside.open(); err != nil {
		return err
	}
	home, err := os.MkdirTemp(s.shop.run, "serve-")
	if err != nil {
		return fmt.Errorf("make a folder for the server: %w", err)
	}
	key := auth.NewText()
	var ports [4]string
	for i := range ports {
		port, err := freePort()
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		ports[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	if own, found := ownAddress(); found {
		_, port, _ := net.SplitHostPort(ports[3])
		s.source = net.JoinHostPort(own, port)
	}
	model, err := s.outside.settings(home)
	if err != nil {
		return err
	}
	cmd := s.shop.command(s.command, "serve", "--json", "--packages", "standard", "--engine", "gvisor", "--listen", ports[0])
	cmd.Env = append(cmd.Env, "COVE_HOME="+s.data, "COVE_SERVER_FOLDER="+filepath.Join(home, "server"), "COVE_DATABASE="+filepath.Join(home, "cove.db"),
		"COVE_FIRST_KEY="+key, "COVE_METRICS_LISTEN="+ports[1], "COVE_DEBUG_LISTEN="+ports[2], "COVE_ALLOW_HOSTS=*",
		"COVE_NETWORK_ALLOW="+s.source, "COVE_REQUESTS_PER_SECOND=0", "COVE_PROJECT_REQUESTS_PER_SECOND=0", "COVE_DRAIN_TIMEOUT=5s")
	cmd.Env = append(cmd.Env, model...)
	if s.process, err = s.shop.serve(cmd); err != nil {
		return fmt.Errorf("start cove serve: %w", err)
	}
	s.api = remote{host: ports[0], header: http.Header{"Authorization": {"Bearer " + key}}, client: promptClient()}
	s.metrics = remote{host: ports[1], client: s.api.client}
	return s.await(ctx)
}

// await waits until the server listens. Its environment and its template are there already, or else it makes them first.
func (s *coveServer) await(ctx context.Context) error {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	return until(ctx, 2*time.Minute, func(ctx context.Context) error {
		if why := s.process.gone(); why != nil {
			giveUp()
			return why
		}
		said, err := s.said()
		if err != nil {
			return err
		}
		s.kept = said.Kept
		return s.api.call(ctx, http.MethodGet, "/api/v1/health", "", http.StatusOK, nil)
	})
}

// serving is what `cove serve --json` says once it listens.
type serving struct {
	Type string `json:"type"`
	Kept int    `json:"sandboxes_kept_ready"`
}

// said looks for that in the server's output, where its log is, too.
func (s *coveServer) said() (serving, error) {
	log, err := os.Open(s.process.log)
	if err != nil {
		return serving{}, err
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line serving
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Type == "serving" {
			return line, nil
		}
	}
	return serving{}, errors.New("cove serve does not say that it serves")
}

func (s *coveServer) Stop(ctx context.Context) error {
	process := s.process
	if process == nil {
		return s.outside.close()
	}
	s.process = nil // it is stopped once
	return errors.Join(process.stop(ctx), s.outside.close())
}

// Refill waits until the server's pool is full. After many claims it keeps more than is set.
func (s *coveServer) Refill(ctx context.Context) error {
	if s.kept == 0 {
		return nil
	}
	return until(ctx, time.Minute, func(ctx context.Context) error {
		if why := s.process.gone(); why != nil {
			return why
		}
		text, err := s.metrics.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if ready, err := strconv.Atoi(value); name == "cove_sandboxes_ready" && err == nil && ready >= s.kept {
				return nil
			}
		}
		return fmt.Errorf("the pool of %d does not get full", s.kept)
	})
}

// Create makes a session; the answer comes when it is ready for code.
func (s *coveServer) Create(ctx context.Context) (Live, error) { return s.create(ctx, "{}") }

// create is Create with what the session is to be, as JSON.
func (s *coveServer) create(ctx context.Context, what string) (Live, error) {
	var made struct {
		ID string `json:"id"`
	}
	if err := s.api.call(ctx, http.MethodPost, "/api/v1/sessions", what, http.StatusCreated, &made); err != nil {
		return nil, err
	}
	return &servedSession{api: s.api, path: "/api/v1/sessions/" + made.ID}, nil
}

func (s *coveServer) Footprint() int64 { return 150e6 }
