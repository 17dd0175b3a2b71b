package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cove/internal/core/problem"
	"cove/internal/python/pyenv"
)

// gatewayKit is a virtual environment with a Jupyter kernel gateway in front of the standard environment: the same
// interpreter, numpy, pandas, matplotlib and IPython as cove, and what Jupyter needs besides.
type gatewayKit struct {
	shop *workshop
	env  *pyenv.Environment

	tried   bool
	failed  error
	python  string
	version string
}

// prepare builds the environment when an earlier run has not.
func (k *gatewayKit) prepare(ctx context.Context) error {
	if k.tried {
		return k.failed
	}
	k.tried = true
	k.failed = k.build(ctx)
	return k.failed
}

func (k *gatewayKit) build(ctx context.Context) error {
	if err := fillFonts(fontFolder(k.shop), k.env); err != nil {
		return err
	}
	dir := filepath.Join(k.shop.dir, "gateway-"+k.env.Key)
	k.python = filepath.Join(dir, "bin", "python")
	ready := filepath.Join(dir, "ready")
	if _, err := os.Stat(ready); err != nil {
		if err := k.install(ctx, dir); err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		if err := os.WriteFile(ready, nil, 0o644); err != nil {
			return fmt.Errorf("keep the gateway's environment: %w", err)
		}
	}
	out, err := k.shop.do(ctx, k.shop.command(k.python, "-c",
		"from importlib.metadata import version as v; print(v('jupyter_kernel_gateway') + ', ipykernel ' + v('ipykernel'))"))
	k.version = strings.TrimSpace(out)
	return err
}

func (k *gatewayKit) install(ctx context.Context, dir string) error {
	fmt.Fprintln(k.shop.progress, "  Installing jupyter_kernel_gateway and ipykernel from the package index, once (about half a minute)")
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove an unfinished environment: %w", err)
	}
	base, err := filepath.EvalSymlinks(k.env.Python)
	if err != nil {
		return fmt.Errorf("find the base Python: %w", err)
	}
	if _, err := k.shop.do(ctx, k.shop.command(base, "-m", "venv", dir)); err != nil {
		return problem.New(codeGatewayInstall, "no virtual environment can be made for the kernel gateway").
			WithHint("Debian, Ubuntu: `apt-get install python3-venv`").WithCause(err)
	}
	parts := strings.SplitN(k.env.Version, ".", 3)
	below := filepath.Join("lib", "python"+parts[0]+"."+parts[1], "site-packages")
	// Found this way, what the standard environment has counts as installed and is the same for both.
	if err := os.WriteFile(filepath.Join(dir, below, "standard.pth"), []byte(filepath.Join(k.env.Dir, below)+"\n"), 0o644); err != nil {
		return fmt.Errorf("join the environments: %w", err)
	}
	pip := k.shop.command(filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--no-input",
		"--disable-pip-version-check", "jupyter_kernel_gateway", "ipykernel")
	pip.Env = append(pip.Env, "PIP_USER=0", "PYTHONPATH=", "PIP_ROOT_USER_ACTION=ignore")
	if _, err := k.shop.do(ctx, pip); err != nil {
		return problem.New(codeGatewayInstall, "the kernel gateway could not be installed").
			WithHint("make sure that pip can install jupyter_kernel_gateway and ipykernel here").WithCause(err)
	}
	return nil
}

// serve starts a gateway and waits until it answers.
func (k *gatewayKit) serve(ctx context.Context, options ...string) (*gatewayServer, error) {
	return k.launch(ctx, "/api/kernels", func(port, token string) (args, env []string) {
		return append([]string{"-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1", "--KernelGatewayApp.port=" + port,
			"--KernelGatewayApp.port_retries=0", "--JupyterWebsocketPersonality.list_kernels=True",
			// Otherwise the gateway drops output beyond 1 MB a second, and gives up on kernels that start late in a crowd.
			"--ZMQChannelsWebsocketConnection.limit_rate=False", "--ZMQChannelsWebsocketConnection.kernel_info_timeout=240",
			"--MappingKernelManager.kernel_info_timeout=240",
		}, options...), []string{"KG_AUTH_TOKEN=" + token}
	})
}

// serveTerminals starts a Jupyter Server whose terminals run a program, a list in JSON, and waits until it answers.
func (k *gatewayKit) serveTerminals(ctx context.Context, program string) (*gatewayServer, error) {
	return k.launch(ctx, "/api/terminals", func(port, token string) (args, env []string) {
		return []string{"-m", "jupyter_server", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=" + port, "--ServerApp.port_retries=0", "--ServerApp.allow_root=True",
			"--ServerApp.open_browser=False", "--ServerApp.jpserver_extensions={'jupyter_server_terminals': True}",
			"--ServerApp.terminado_settings={'shell_command': " + program + "}"}, []string{"JUPYTER_TOKEN=" + token}
	})
}

// launch starts a server of Jupyter's and waits until it answers at a path.
func (k *gatewayKit) launch(ctx context.Context, path string, how func(port, token string) (args, env []string)) (*gatewayServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	home, err := os.MkdirTemp(k.shop.run, "jupyter-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for Jupyter: %w", err)
	}
	token := filepath.Base(home) + k.shop.id
	args, env := how(strconv.Itoa(port), token)
	cmd := k.shop.command(k.python, args...)
	cmd.Dir = home
	cmd.Env = slices.Concat(cmd.Env, matplotlibEnv(fontFolder(k.shop)), env, []string{"JUPYTER_NO_CONFIG=1", "JUPYTER_PATH=",
		"JUPYTER_CONFIG_DIR=" + home, "JUPYTER_DATA_DIR=" + home, "JUPYTER_RUNTIME_DIR=" + home, "IPYTHONDIR=" + home, "PYTHONPATH="})
	process, err := k.shop.serve(cmd)
	if err != nil {
		return nil, fmt.Errorf("start a server of Jupyter's: %w", err)
	}
	g := &gatewayServer{process: process, remote: remote{host: "127.0.0.1:" + strconv.Itoa(port), header: http.Header{"Authorization": {"token " + token}}, client: promptClient()}}
	err = until(ctx, 60*time.Second, func(ctx context.Context) error {
		if why := process.gone(); why != nil {
			return why
		}
		return g.call(ctx, http.MethodGet, path, "", http.StatusOK, new(any))
	})
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("the server of Jupyter's does not answer: %w", err), process.gone(), process.stop(stop))
	}
	return g, nil
}

// freePort is a port that nobody listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
