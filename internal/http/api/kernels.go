package api

import (
	"context"
	"net/http"

	"cove/internal/core/problem"
	"cove/internal/server/auth"
	"cove/internal/server/hub"
)

// Kernel is one Python interpreter of a session.
type Kernel struct {
	Name string `json:"name" example:"main"`
	Busy bool   `json:"busy"`
}

func kernelOf(k hub.Kernel) Kernel { return Kernel(k) }

type (
	// KernelPath names a kernel in an address.
	KernelPath struct {
		SessionPath
		Kernel string `path:"kernel" maxLength:"64" example:"main"`
	}
	newKernel struct {
		SessionPath
		Body struct {
			Name string `json:"name" doc:"Letters, digits, _ . -" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9_.-]+$"`
		}
	}
)

func (s *server) addKernels() {
	const tag = "kernels"
	add(s, operation{id: "kernel.list", method: http.MethodGet, path: "/sessions/{session}/kernels", tag: tag, action: auth.SessionsRead, summary: "List a session's kernels",
		errors: []problem.Code{problem.SessionNotFound}, example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels`},
		func(ctx context.Context, who auth.Principal, in *SessionPath) (List[Kernel], error) {
			out, err := s.o.Hub.Kernels(ctx, who, in.Session)
			return List[Kernel]{Items: each(out, kernelOf)}, err
		})
	add(s, operation{id: "kernel.start", method: http.MethodPost, path: "/sessions/{session}/kernels", tag: tag, action: auth.SessionsWrite, status: http.StatusCreated, repeat: repeatKept,
		summary: "Start another kernel", errors: []problem.Code{problem.SessionNotFound, problem.KernelExists},
		example: `curl -H "Authorization: Bearer $KEY" $COVE/sessions/$SESSION/kernels -d '{"name":"third"}'`},
		func(ctx context.Context, who auth.Principal, in *newKernel) (Kernel, error) {
			out, err := s.o.Hub.StartKernel(ctx, who, in.Session, in.Body.Name)
			return kernelOf(out), err
		})
	add(s, operation{id: "kernel.restart", method: http.MethodPost, path: "/sessions/{session}/kernels/{kernel}/restart", tag: tag, action: auth.SessionsExecute, summary: "Restart a kernel",
		about: "A new interpreter takes its place: variables and imports are gone, files stay. Running code is interrupted.", errors: []problem.Code{problem.SessionNotFound, problem.KernelNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X POST $COVE/sessions/$SESSION/kernels/main/restart`},
		func(ctx context.Context, who auth.Principal, in *KernelPath) (Kernel, error) {
			out, err := s.o.Hub.RestartKernel(ctx, who, in.Session, in.Kernel)
			return kernelOf(out), err
		})
	addSilent(s, operation{id: "kernel.stop", method: http.MethodDelete, path: "/sessions/{session}/kernels/{kernel}", tag: tag, action: auth.SessionsWrite, summary: "Stop a kernel",
		about: "Any but `main`, which is always there.", errors: []problem.Code{problem.SessionNotFound, problem.KernelNotFound},
		example: `curl -H "Authorization: Bearer $KEY" -X DELETE $COVE/sessions/$SESSION/kernels/third`},
		func(ctx context.Context, who auth.Principal, in *KernelPath) error {
			return s.o.Hub.StopKernel(ctx, who, in.Session, in.Kernel)
		})
}
