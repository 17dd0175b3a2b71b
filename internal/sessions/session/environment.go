package session

import (
	"maps"
	"os"

	"cove/internal/machine/sandbox"
	"cove/internal/machine/wire"
	"cove/internal/python/pyenv"
)

// certificates are the authorities that this machine trusts, at the same place in the sandbox: programs that bring a list of their own trust these instead, among them
// those of the organization whose machine this is. In a sandbox the guest adds the session's own.
const certificates = wire.SystemCertificates

// certificateVariables name the list for OpenSSL, Requests, curl, pip, Node.js, Git, gRPC and AWS's clients.
var certificateVariables = []string{
	"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "AWS_CA_BUNDLE",
}

// environment is what processes of the session find in their environment.
func (s *Live) environment(layout sandbox.Layout) map[string]string {
	root := layout.Path(pyenv.MountPoint)
	env := map[string]string{
		"PATH":     root + "/bin:/usr/local/bin:/usr/bin:/bin:" + layout.Tmp + "/.local/bin",
		"HOME":     layout.Workspace,
		"USER":     "user",
		"LANG":     "C.UTF-8",
		"TMPDIR":   layout.Tmp,
		"TERM":     "dumb",
		"NO_COLOR": "1",
		// Nothing but the user's own files belongs in the workspace.
		"PYTHONDONTWRITEBYTECODE": "1",
		"PYTHONUSERBASE":          layout.Tmp + "/.local", // where pip installs from inside; see internal/python/pyenv/standin
		"XDG_CACHE_HOME":          layout.Tmp + "/.cache",
		"MPLCONFIGDIR":            layout.Tmp + "/.matplotlib",
		"IPYTHONDIR":              layout.Tmp + "/.ipython",
		"MPLBACKEND":              "module://matplotlib_inline.backend_inline",
	}
	if _, err := os.Stat(certificates); err == nil {
		list := certificates
		if root == pyenv.MountPoint { // the sandbox has a file system of its own
			list = wire.CertificatesPath
		}
		for _, name := range certificateVariables {
			env[name] = list
		}
	}
	maps.Copy(env, s.opts.Env.Variables(root, layout.Path(pyenv.DataMountPoint)))
	if i := s.opts.Env.Image; i != nil {
		delete(env, "MPLBACKEND") // programs of the image may have a matplotlib, and not that; kernels choose it for themselves
		for name, value := range i.Variables {
			if name == "PATH" {
				env[name] = value + ":" + root + "/bin:/usr/local/bin:" + layout.Tmp + "/.local/bin" // sudo is in the second
			} else if _, ours := env[name]; !ours {
				env[name] = value
			}
		}
	}
	return env
}

// ofPrograms are variables that an image may set for its programs and libraries, and that would have cove's interpreter, which is not one of them, load these.
var ofPrograms = []string{"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"}

// kernelEnvironment is what kernels find in their environment.
func (s *Live) kernelEnvironment(layout sandbox.Layout) map[string]string {
	env := s.environment(layout)
	if i := s.opts.Env.Image; i != nil && i.Own {
		env["COVE_KERNEL_PACKAGES"] = i.KernelPackages
	} else if i != nil {
		for _, name := range ofPrograms {
			delete(env, name)
		}
	}
	return env
}
