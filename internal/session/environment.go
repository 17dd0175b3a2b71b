package session

import (
	"maps"
	"os"

	"cove/internal/pyenv"
	"cove/internal/sandbox"
	"cove/internal/wire"
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
		"PYTHONUSERBASE":          layout.Tmp + "/.local", // where pip installs from inside; see internal/pyenv/standin
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
	return env
}
