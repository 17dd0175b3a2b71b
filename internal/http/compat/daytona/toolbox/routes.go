package toolbox

import "cove/internal/server/auth"

// route is one operation.
type route struct {
	pattern string
	needs   []auth.Action
	large   bool
	handle  func(*Toolbox, *call) error
}

func routes() []route {
	return append(append(processRoutes(), fileRoutes()...), gitRoutes()...)
}

func processRoutes() []route {
	read, run := []auth.Action{auth.SessionsRead}, []auth.Action{auth.SessionsExecute}
	own := []auth.Action{auth.SessionsWrite, auth.SessionsExecute}
	return []route{
		{"POST /process/code-run", own, true, (*Toolbox).codeRun},
		{"POST /process/execute", run, true, (*Toolbox).execute},
		{"POST /process/session", run, false, (*Toolbox).makeShell},
		{"GET /process/session", read, false, (*Toolbox).listShells},
		{"GET /process/session/entrypoint", read, false, (*Toolbox).entrypointSession},
		{"GET /process/session/entrypoint/logs", read, false, (*Toolbox).entrypointLogs},
		{"GET /process/session/{session}", read, false, (*Toolbox).showShell},
		{"DELETE /process/session/{session}", run, false, (*Toolbox).deleteShell},
		{"POST /process/session/{session}/exec", run, true, (*Toolbox).inSession},
		{"GET /process/session/{session}/command/{command}", read, false, (*Toolbox).showCommand},
		{"GET /process/session/{session}/command/{command}/logs", read, false, (*Toolbox).commandLogs},
		{"POST /process/session/{session}/command/{command}/input", run, true, (*Toolbox).tellCommand},
		{"POST /process/interpreter/context", own, false, (*Toolbox).makeContext},
		{"GET /process/interpreter/context", read, false, (*Toolbox).listContexts},
		{"DELETE /process/interpreter/context/{context}", own, false, (*Toolbox).deleteContext},
		{"GET /process/interpreter/execute", run, false, (*Toolbox).interpret},
		{"POST /process/pty", run, false, (*Toolbox).makePTY},
		{"GET /process/pty", read, false, (*Toolbox).listPTYs},
		{"GET /process/pty/create-connect", run, false, (*Toolbox).createPTY},
		{"GET /process/pty/{pty}", read, false, (*Toolbox).showPTY},
		{"DELETE /process/pty/{pty}", run, false, (*Toolbox).deletePTY},
		{"POST /process/pty/{pty}/resize", run, false, (*Toolbox).resizePTY},
		{"GET /process/pty/{pty}/connect", run, false, (*Toolbox).connectPTY},
		{"POST /lsp/start", own, false, (*Toolbox).startLSP},
		{"POST /lsp/stop", run, false, (*Toolbox).stopLSP},
		{"POST /lsp/did-open", run, false, (*Toolbox).openDocument},
		{"POST /lsp/did-close", run, false, (*Toolbox).closeDocument},
		{"POST /lsp/completions", run, false, (*Toolbox).completions},
		{"GET /lsp/document-symbols", run, false, (*Toolbox).documentSymbols},
		{"GET /lsp/workspacesymbols", run, false, (*Toolbox).workspaceSymbols},
		{"GET /port", read, false, (*Toolbox).ports},
		{"GET /port/{port}/in-use", read, false, (*Toolbox).portInUse},
		{"GET /system/metrics", run, false, (*Toolbox).metrics},
		{"GET /work-dir", read, false, (*Toolbox).workDir},
		{"GET /project-dir", read, false, (*Toolbox).workDir},
		{"GET /user-home-dir", read, false, (*Toolbox).homeDir},
		{"GET /version", read, false, (*Toolbox).version},
		{"GET /computeruse/{what...}", read, false, (*Toolbox).noDesktop},
		{"POST /computeruse/{what...}", read, false, (*Toolbox).noDesktop},
		{"PUT /computeruse/{what...}", read, false, (*Toolbox).noDesktop},
		{"DELETE /computeruse/{what...}", read, false, (*Toolbox).noDesktop},
		{"POST /env", own, false, (*Toolbox).setEnv},
	}
}

func fileRoutes() []route {
	read, write := []auth.Action{auth.FilesRead}, []auth.Action{auth.FilesWrite}
	return []route{
		{"GET /files", read, false, (*Toolbox).listFiles},
		{"DELETE /files", write, false, (*Toolbox).deleteFile},
		{"GET /files/info", read, false, (*Toolbox).fileInfo},
		{"POST /files/folder", write, false, (*Toolbox).makeFolder},
		{"POST /files/move", write, false, (*Toolbox).moveFile},
		{"POST /files/permissions", write, false, (*Toolbox).setPermissions},
		{"GET /files/find", read, false, (*Toolbox).findText},
		{"GET /files/search", read, false, (*Toolbox).findNames},
		{"POST /files/replace", write, false, (*Toolbox).replaceText},
		{"GET /files/download", read, false, (*Toolbox).download},
		{"POST /files/bulk-download", read, false, (*Toolbox).downloadMany},
		{"POST /files/upload", write, true, (*Toolbox).uploadOne},
		{"POST /files/upload-v2", write, true, (*Toolbox).uploadOne},
		{"POST /files/bulk-upload", write, true, (*Toolbox).uploadMany},
	}
}

func gitRoutes() []route {
	run := []auth.Action{auth.SessionsExecute}
	return []route{
		{"POST /git/clone", run, false, (*Toolbox).gitClone},
		{"POST /git/init", run, false, (*Toolbox).gitInit},
		{"POST /git/add", run, false, (*Toolbox).gitAdd},
		{"POST /git/commit", run, false, (*Toolbox).gitCommit},
		{"POST /git/push", run, false, (*Toolbox).gitPush},
		{"POST /git/pull", run, false, (*Toolbox).gitPull},
		{"POST /git/checkout", run, false, (*Toolbox).gitCheckout},
		{"GET /git/branches", run, false, (*Toolbox).gitBranches},
		{"POST /git/branches", run, false, (*Toolbox).makeBranch},
		{"DELETE /git/branches", run, false, (*Toolbox).deleteBranch},
		{"POST /git/reset", run, false, (*Toolbox).gitReset},
		{"POST /git/restore", run, false, (*Toolbox).gitRestore},
		{"GET /git/status", run, false, (*Toolbox).gitState},
		{"GET /git/history", run, false, (*Toolbox).gitHistory},
		{"GET /git/config", run, false, (*Toolbox).gitConfig},
		{"POST /git/config", run, false, (*Toolbox).setGitConfig},
		{"POST /git/config/user", run, false, (*Toolbox).gitUser},
		{"POST /git/credentials", run, false, (*Toolbox).gitCredentials},
		{"GET /git/remotes", run, false, (*Toolbox).gitRemotes},
		{"POST /git/remotes", run, false, (*Toolbox).addRemote},
	}
}
