package problem

// DeniedCode is a code of the kind Denied: credentials or policy forbid the operation.
type DeniedCode string

// Kind implements Code.
func (DeniedCode) Kind() Kind { return Denied }

func (c DeniedCode) String() string { return string(c) }

func (DeniedCode) sealed() {}

// The codes of the kind Denied. The comment of each is its documentation for clients.
const (
	// Who put a question into a queue may not ask any more: the user has left the project, or the key was revoked or has expired. Change the question, which makes it yours, or take it out.
	AskerGone = DeniedCode("asker_gone")
	// Building packages from source needs an engine that isolates code. Use the engine gvisor, or a package that has wheels.
	BuildUnavailable = DeniedCode("build_unavailable")
	// The server does not allow requests from this web page. Have the operator allow the page's origin.
	CrossOrigin = DeniedCode("cross_origin")
	// What a place offers as data of a library is not what its index says. Try again; then ask who runs the place.
	DataDamaged = DeniedCode("data_damaged")
	// The rules for the network do not allow the destination. Ask for it in the session's rules, or have the operator allow it.
	DestinationRefused = DeniedCode("destination_refused")
	// The path leads out of the workspace, or its permissions forbid the operation. Choose another path.
	FileDenied = DeniedCode("file_denied")
	// Policy forbids the only files that would fit. Ask for another version, or ask the operator for an exception.
	FileWithheld = DeniedCode("file_withheld")
	// The key does not have the right to do this. Use a key whose role and scopes include the action.
	Forbidden = DeniedCode("forbidden")
	// The operator of the server does not let sessions begin from this image. Use another one, or have the operator list it in images.allow.
	ImageDenied = DeniedCode("image_denied")
	// The package index or the proxy before it refused the credentials. Correct the credentials.
	IndexDenied = DeniedCode("index_denied")
	// Installing packages is switched off. Have the operator switch on packages.install.
	InstallOff = DeniedCode("install_off")
	// The access token is good, and nobody on the server is linked to its holder, or no longer. Ask an admin of the server for it.
	HolderUnknown = DeniedCode("holder_unknown")
	// The code of the invitation is unknown, was withdrawn, or has expired. Ask who invited you for another one.
	InvitationUnknown = DeniedCode("invitation_unknown")
	// The invitation was used before, and works once. Sign in, or ask who invited you for another one.
	InvitationUsed = DeniedCode("invitation_used")
	// The process that keeps the session in memory belongs to another user. Use your own sessions.
	KeeperUser = DeniedCode("keeper_user")
	// The API key has expired. Create another key.
	KeyExpired = DeniedCode("key_expired")
	// The server requires an API key, and none is set. Set COVE_KEY.
	KeyMissing = DeniedCode("key_missing")
	// The server does not answer to this host name. Call it by a name that it has, or have the operator allow the name.
	Misdirected = DeniedCode("misdirected")
	// The model's provider refused the configured key. Correct the key of the provider.
	ModelAuth = DeniedCode("model_auth")
	// The model needs a key of its provider, and none is set. Set the variable that the message names.
	ModelKeyMissing = DeniedCode("model_key_missing")
	// Code in the sandbox gave a file a name that is not safe to save. Rename the file in the code.
	NameRefused = DeniedCode("name_refused")
	// The operator has forbidden the package. Use another package.
	PackageDenied = DeniedCode("package_denied")
	// A downloaded package is not the file that the index or the lock promises. Try again; if it stays so, do not trust the index.
	PackageHashMismatch = DeniedCode("package_hash_mismatch")
	// The package is not among those that are installed without approval. Have the operator allow the package.
	PackageNeedsApproval = DeniedCode("package_needs_approval")
	// The package index has put the package under quarantine. Use another package.
	PackageQuarantined = DeniedCode("package_quarantined")
	// The module has no package that may be installed for it. Follow the hint.
	PackageRefused = DeniedCode("package_refused")
	// The server gives sessions no network, or not to this destination. Have the operator allow it in network.allow.
	NetworkOff = DeniedCode("network_off")
	// Packages cannot be installed in this session. Use the packages that are there.
	PackagesOff = DeniedCode("packages_off")
	// The present password is not right. Try again, or ask an admin of the server for a link that sets a new one.
	PasswordWrong = DeniedCode("password_wrong")
	// The requirement names a URL, a path, a repository or an option. Name projects and versions only.
	RequirementNotAllowed = DeniedCode("requirement_not_allowed")
	// The certificate of the server is not trusted. Set SSL_CERT_FILE to the certificate if it is the server's own.
	ServerUntrusted = DeniedCode("server_untrusted")
	// The operator has switched off links to conversations. Export the conversation instead, or have serve.sharing switched on.
	SharingOff = DeniedCode("sharing_off")
	// The code for signing in is unknown or has expired. Get another with `cove open`, or sign in with a key.
	SignInCodeUnknown = DeniedCode("sign_in_code_unknown")
	// The code for signing in was used before, and works once. Get another with `cove open`, or sign in with a key.
	SignInCodeUsed = DeniedCode("sign_in_code_used")
	// The name or the password is not right. Try again, or ask an admin of the server for a link that sets a new password.
	SignInWrong = DeniedCode("sign_in_wrong")
	// The access token is not right, has expired, or was made for another server. Get another from the authorization server that the answer names.
	TokenInvalid = DeniedCode("token_invalid")
	// The access token has not the scope that the server takes. Ask the authorization server for a token with that scope.
	TokenScope = DeniedCode("token_scope")
	// The request has no valid API key, or the browser is not signed in. Send one as Authorization: Bearer KEY.
	Unauthenticated = DeniedCode("unauthenticated")
	// No version that was asked for has a file that may be used. Ask for another version, or for any.
	VersionUnavailable = DeniedCode("version_unavailable")
)
